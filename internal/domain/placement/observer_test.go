package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// observerRecorder records the calls of an Observer.
type observerRecorder struct{ entries []string }

func (o *observerRecorder) record(what string) func() {
	o.entries = append(o.entries, what)
	return func() { o.entries = append(o.entries, "end of "+what) }
}

func (o *observerRecorder) observer() Observer {
	return Observer{
		Step:           func(step Step) func() { return o.record(string(step)) },
		ExtensionPoint: func(point ExtensionPoint) func() { return o.record("point " + string(point)) },
		Plugin: func(point ExtensionPoint, plugin string) func() {
			return o.record("plugin " + string(point) + "/" + plugin)
		},
	}
}

func TestObserverReceivesEachStepOnce(t *testing.T) {
	filtering := []string{
		"Filter", "point Filter", "plugin Filter/ClusterAffinity", "end of plugin Filter/ClusterAffinity",
		"plugin Filter/TaintToleration", "end of plugin Filter/TaintToleration", "end of point Filter", "end of Filter",
	}
	scoring := []string{
		"Score", "point Score", "plugin Score/ClusterLocality", "end of plugin Score/ClusterLocality", "end of point Score", "end of Score",
		"Select", "end of Select",
	}
	both := append(append([]string{}, filtering...), scoring...)
	unsupported := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Unsupported"}
	for name, tc := range map[string]struct {
		placement policyv1alpha1.Placement
		clusters  []*clusterv1alpha1.Cluster
		want      []string
	}{
		"all steps succeed":                        {policyv1alpha1.Placement{}, members("a", "b"), append(both[:len(both):len(both)], "AssignReplicas", "end of AssignReplicas")},
		"the filter step fails and is still ended": {policyv1alpha1.Placement{}, nil, filtering},
		"the assign step fails": {
			policyv1alpha1.Placement{ReplicaScheduling: unsupported}, members("a"), append(both[:len(both):len(both)], "AssignReplicas", "end of AssignReplicas")},
		"steps are repeated for each affinity group": {
			policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("x", "x"), affinityGroup("y", "y")}},
			members("a"), append(filtering[:len(filtering):len(filtering)], filtering...)},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(deployment(1, tc.placement), tc.clusters, nil)
			in.Plugins = Plugins{PluginTaintToleration, PluginClusterAffinity, PluginClusterLocality}
			unobserved, unobservedErr := Schedule(in)
			recorder := &observerRecorder{}
			in.Observer = recorder.observer()
			observed, observedErr := Schedule(in)
			if diff := cmp.Diff(tc.want, recorder.entries); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(unobserved.Clusters, observed.Clusters); diff != "" || (unobservedErr == nil) != (observedErr == nil) {
				t.Errorf("the observer changes the result (-unobserved +observed):\n%s", diff)
			}
		})
	}
}

func TestFitErrorReportsFirstReasonPerCluster(t *testing.T) {
	clusters := []*clusterv1alpha1.Cluster{
		member("a", withoutAPIs, tainted("key", "value", "NoSchedule")), member("b", tainted("key", "value", "NoSchedule")),
		member("c"), member("d", beingRemoved),
	}
	_, err := Schedule(newInput(deployment(1, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "b")}), clusters, nil))
	want := "0/4 clusters are available: cluster a: does not serve apps/v1 Deployment; cluster b: untolerated taint {key=value:NoSchedule}."
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
