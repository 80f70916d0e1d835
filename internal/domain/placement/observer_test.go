package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// diary notes what an observer is told.
type diary struct{ entries []string }

func (d *diary) watch(what string) func() {
	d.entries = append(d.entries, what)
	return func() { d.entries = append(d.entries, "end of "+what) }
}

func (d *diary) observer() Observer {
	return Observer{
		Step:  func(step Step) func() { return d.watch(string(step)) },
		Point: func(point Point) func() { return d.watch("point " + string(point)) },
		Plugin: func(point Point, plugin string) func() {
			return d.watch("plugin " + string(point) + "/" + plugin)
		},
	}
}

func TestAnObserverIsToldOfEveryStepOnce(t *testing.T) {
	filtering := []string{
		"Filter", "point Filter", "plugin Filter/ClusterAffinity", "end of plugin Filter/ClusterAffinity",
		"plugin Filter/TaintToleration", "end of plugin Filter/TaintToleration", "end of point Filter", "end of Filter",
	}
	scoring := []string{
		"Score", "point Score", "plugin Score/ClusterLocality", "end of plugin Score/ClusterLocality", "end of point Score", "end of Score",
		"Select", "end of Select",
	}
	both := append(append([]string{}, filtering...), scoring...)
	strange := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Strange"}
	for name, tc := range map[string]struct {
		placement policyv1alpha1.Placement
		clusters  []*clusterv1alpha1.Cluster
		want      []string
	}{
		"a scheduling that works out":                            {policyv1alpha1.Placement{}, members("a", "b"), append(both[:len(both):len(both)], "AssignReplicas", "end of AssignReplicas")},
		"one that ends with the filters, which end all the same": {policyv1alpha1.Placement{}, nil, filtering},
		"one that ends with the division": {
			policyv1alpha1.Placement{ReplicaScheduling: strange}, members("a"), append(both[:len(both):len(both)], "AssignReplicas", "end of AssignReplicas")},
		"each affinity group is a new try": {
			policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{group("x", "x"), group("y", "y")}},
			members("a"), append(filtering[:len(filtering):len(filtering)], filtering...)},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(deployment(1, tc.placement), tc.clusters, nil)
			in.Plugins = Plugins{PluginTaintToleration, PluginClusterAffinity, PluginClusterLocality}
			silent, silentErr := Schedule(in)
			notes := &diary{}
			in.Observer = notes.observer()
			watched, watchedErr := Schedule(in)
			if diff := cmp.Diff(tc.want, notes.entries); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(silent.Clusters, watched.Clusters); diff != "" || (silentErr == nil) != (watchedErr == nil) {
				t.Errorf("being watched changes the result (-unwatched +watched):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheFirstReasonOfAClusterCounts(t *testing.T) {
	clusters := []*clusterv1alpha1.Cluster{
		member("a", withoutAPIs, tainted("key", "value", "NoSchedule")), member("b", tainted("key", "value", "NoSchedule")),
		member("c"), member("d", beingRemoved),
	}
	_, err := Schedule(input(deployment(1, policyv1alpha1.Placement{ClusterAffinity: named("a", "b")}), clusters, nil))
	want := "0/4 clusters are available: cluster a: does not serve apps/v1 Deployment; cluster b: untolerated taint {key=value:NoSchedule}."
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
