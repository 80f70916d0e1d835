package placement

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestFilters(t *testing.T) {
	noStrategy := policyv1alpha1.Placement{}
	tolerating := func(tolerations ...corev1.Toleration) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterTolerations: tolerations}
	}
	spreading := func(fields ...policyv1alpha1.SpreadFieldValue) policyv1alpha1.Placement {
		placement := policyv1alpha1.Placement{}
		for _, field := range fields {
			placement.SpreadConstraints = append(placement.SpreadConstraints, spreadBy(field, 1, 1))
		}
		return placement
	}
	evicting := func(from string) func(*workv1alpha2.ResourceBindingSpec) {
		return func(spec *workv1alpha2.ResourceBindingSpec) {
			spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from}}
		}
	}
	grouped := func(groups workv1alpha2.WorkloadAffinityGroups) func(*workv1alpha2.ResourceBindingSpec) {
		return func(spec *workv1alpha2.ResourceBindingSpec) { spec.WorkloadAffinityGroups = &groups }
	}
	present := func(spec *workv1alpha2.ResourceBindingSpec) {
		spec.Clusters = []workv1alpha2.TargetCluster{target("a", 1)}
	}
	near := workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=x"}
	apart := workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "app=x"}
	gate := Features{WorkloadAffinity: true}
	taint := tainted("k", "v", corev1.TaintEffectNoSchedule)

	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	addedTaint := func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "n", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon}})
	}
	forAMinute := corev1.Toleration{Key: "n", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(60))}

	const (
		noAPI        = "cluster a: does not serve apps/v1 Deployment"
		untolerated  = "cluster a: untolerated taint {k=v:NoSchedule}"
		mismatch     = "no cluster matches the cluster affinity (clusterNames b)"
		evictions    = "cluster a: eviction in progress"
		affinity     = "cluster a: not every workload of affinity group \"app=x\" is there"
		antiAffinity = "cluster a: another workload of anti-affinity group \"app=x\" is there"
	)
	tests := map[string]struct {
		cluster   *clusterv1alpha1.Cluster
		placement policyv1alpha1.Placement
		change    func(*workv1alpha2.ResourceBindingSpec)
		features  Features
		plugins   Plugins
		peers     Peers
		now       time.Time
		want      string // the reason, or empty if the cluster passes
	}{
		"a fitting cluster passes":                        {cluster: member("a")},
		"the API is missing":                              {cluster: member("a", withoutAPIs), want: noAPI},
		"the API is missing, current target":              {cluster: member("a", withoutAPIs), change: present},
		"an untolerated taint":                            {cluster: member("a", taint), want: untolerated},
		"a NoExecute taint":                               {cluster: member("a", tainted("k", "", corev1.TaintEffectNoExecute)), want: "cluster a: untolerated taint {k=:NoExecute}"},
		"a PreferNoSchedule taint rejects nothing":        {cluster: member("a", tainted("k", "v", corev1.TaintEffectPreferNoSchedule))},
		"a taint, current target":                         {cluster: member("a", taint), change: present},
		"the first untolerated of several taints":         {cluster: member("a", tainted("t", "v", "NoSchedule"), taint), placement: tolerating(corev1.Toleration{Key: "t", Value: "v"}), want: untolerated},
		"a toleration that equals":                        {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Equal", Value: "v", Effect: "NoSchedule"})},
		"a toleration without operator means equal":       {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Value: "w"}), want: untolerated},
		"a toleration of any value":                       {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Exists"})},
		"a toleration of everything":                      {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Operator: "Exists"})},
		"a toleration of another effect":                  {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute"}), want: untolerated},
		"a toleration of another key":                     {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "l", Operator: "Exists"}), want: untolerated},
		"comparing tolerations are not supported":         {cluster: member("a", tainted("k", "5", "NoSchedule")), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Gt", Value: "1"}), want: "cluster a: untolerated taint {k=5:NoSchedule}"},
		"the affinity does not match":                     {cluster: member("a"), placement: policyv1alpha1.Placement{ClusterAffinity: clustersNamed("b")}, want: mismatch},
		"the affinity does not match, current target":     {cluster: member("a"), placement: policyv1alpha1.Placement{ClusterAffinity: clustersNamed("b")}, change: present, want: mismatch},
		"spread by provider, the cluster has none":        {cluster: member("a"), placement: spreading("cluster", "provider"), want: "cluster a: no spec.provider to spread by"},
		"spread by region, the cluster has none":          {cluster: member("a"), placement: spreading("cluster", "region"), want: "cluster a: no spec.region to spread by"},
		"spread by zone, the cluster has none":            {cluster: member("a"), placement: spreading("cluster", "zone"), want: "cluster a: no spec.zones to spread by"},
		"spread by zone, the cluster has one":             {cluster: member("a", inZones("z")), placement: spreading("cluster", "zone")},
		"an eviction from the cluster":                    {cluster: member("a"), change: evicting("a"), want: evictions},
		"an eviction from another cluster":                {cluster: member("a"), change: evicting("b")},
		"no peer targets this cluster":                    {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("b")}}, want: affinity},
		"one peer of two targets this cluster":            {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("a", "b"), sets.New("b")}}, want: affinity},
		"all peers target this cluster":                   {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("a", "b"), sets.New("a")}}},
		"the first of a group goes anywhere":              {cluster: member("a"), change: grouped(near), features: gate},
		"peers without targets have no effect":            {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New[string]()}}},
		"affinity with the gate off":                      {cluster: member("a"), change: grouped(near), peers: Peers{Affinity: []sets.Set[string]{sets.New("b")}}},
		"an anti-affinity peer targets this cluster":      {cluster: member("a"), change: grouped(apart), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("b"), sets.New("a")}}, want: antiAffinity},
		"an anti-affinity peer targets another cluster":   {cluster: member("a"), change: grouped(apart), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("b")}}},
		"an anti-affinity peer, current target":           {cluster: member("a"), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("a")}}, change: func(s *workv1alpha2.ResourceBindingSpec) { grouped(apart)(s); present(s) }},
		"a toleration whose time is over":                 {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(time.Minute), want: "cluster a: untolerated taint {n=:NoExecute}"},
		"a toleration whose time is not over":             {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(59 * time.Second)},
		"a toleration whose time is over, current target": {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(time.Hour), change: present},
		"a cluster being removed":                         {cluster: member("a", beingRemoved, withoutAPIs), want: "cluster a: being removed"},
		"being removed, and the affinity does not match":  {cluster: member("a", beingRemoved), placement: policyv1alpha1.Placement{ClusterAffinity: clustersNamed("b")}, want: mismatch},
		"the first filter in the table gives the reason":  {cluster: member("a", withoutAPIs, taint), want: noAPI},
		"clusters outside the affinity have no reason":    {cluster: member("a", withoutAPIs, taint), placement: policyv1alpha1.Placement{ClusterAffinity: clustersNamed("b")}, want: mismatch},
		"a filter switched off":                           {cluster: member("a", withoutAPIs), plugins: Plugins{"*", "-APIEnablement"}, placement: noStrategy},
		"only one filter switched on":                     {cluster: member("a", withoutAPIs, taint), plugins: Plugins{"TaintToleration"}, want: untolerated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if len(test.placement.SpreadConstraints) > 0 {
				test.placement.ReplicaScheduling = evenly // ignores the constraints after the filters
			}
			spec := deployment(1, test.placement)
			if test.change != nil {
				test.change(spec)
			}
			in := newInput(spec, []*clusterv1alpha1.Cluster{test.cluster}, nil)
			in.Features, in.Plugins, in.Peers, in.Now = test.features, test.plugins, test.peers, test.now
			_, err := Schedule(in)
			want := ""
			if test.want != "" {
				want = fmt.Sprintf("0/1 clusters are available: %s.", test.want)
			}
			if got := errorText(err); got != want {
				t.Errorf("error %q, want %q", got, want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFitErrorNamesClusters(t *testing.T) {
	taint := tainted("k", "v", corev1.TaintEffectNoSchedule)
	tests := map[string]struct {
		affinity *policyv1alpha1.ClusterAffinity
		clusters []*clusterv1alpha1.Cluster
		want     string
	}{
		"one cluster": {clustersNamed("c"), []*clusterv1alpha1.Cluster{member("a"), member("b"), member("c", withoutAPIs)},
			"0/3 clusters are available: cluster c: does not serve apps/v1 Deployment."},
		"clusters of one reason are listed together, by name": {nil, []*clusterv1alpha1.Cluster{member("c", withoutAPIs), member("b", taint), member("a", withoutAPIs)},
			"0/3 clusters are available: clusters a, c: do not serve apps/v1 Deployment; cluster b: untolerated taint {k=v:NoSchedule}."},
		"two reasons of one filter, by the first name": {nil, []*clusterv1alpha1.Cluster{member("b", tainted("a", "a", "NoSchedule")), member("a", taint)},
			"0/2 clusters are available: cluster a: untolerated taint {k=v:NoSchedule}; cluster b: untolerated taint {a=a:NoSchedule}."},
		"an affinity that selects nothing is described": {&policyv1alpha1.ClusterAffinity{
			ClusterNames: []string{"1", "2", "3", "4", "5", "6", "7"}, ExcludeClusters: []string{"a"},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "provider", Operator: "In", Values: []string{"aws", "gcp"}}, {Key: "region", Operator: "Exists"}}},
		}, members("a"), "0/1 clusters are available: no cluster matches the cluster affinity (clusterNames 1, 2, 3, 4, 5 and 2 more, exclude a, labelSelector env=prod, provider In aws, gcp, region Exists)."},
		"no cluster at all": {clustersNamed("c"), nil, "0/0 clusters are available: no cluster exists."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkSchedule(t, newInput(deployment(1, policyv1alpha1.Placement{ClusterAffinity: test.affinity}), test.clusters, nil), nil, test.want)
		})
	}
}

func TestFitErrorIsBounded(t *testing.T) {
	var clusters []*clusterv1alpha1.Cluster
	for i := range 200 {
		clusters = append(clusters, member(fmt.Sprintf("member%03d", i), withoutAPIs))
	}
	for i := range 50 {
		clusters = append(clusters, member(fmt.Sprintf("tainted%03d", i), tainted("k", "v", corev1.TaintEffectNoSchedule)))
	}
	_, err := Schedule(newInput(deployment(1, policyv1alpha1.Placement{}), clusters, nil))
	text := errorText(err)
	if len(text) > 512 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	var first, last string
	var listed, more int
	if _, err := fmt.Sscanf(text, "0/250 clusters are available: clusters %s", &first); err != nil || first != "member000," {
		t.Errorf("%q begins with cluster %q: %v", text, first, err)
	}
	listed = strings.Count(text, "member") + strings.Count(text, "tainted0")
	last = text[strings.LastIndex(text, " and "):]
	if _, err := fmt.Sscanf(last, " and %d more.", &more); err != nil || listed+more != 250 {
		t.Errorf("%d clusters are listed, and it ends with %q: %v", listed, last, err)
	}
}

func TestPlugins(t *testing.T) {
	tests := map[string]struct {
		plugins Plugins
		want    bool
	}{
		"an empty list means all":   {nil, true},
		"all":                       {Plugins{"*"}, true},
		"that one":                  {Plugins{"ClusterAffinity"}, true},
		"another one":               {Plugins{"TaintToleration"}, false},
		"all but that one":          {Plugins{"*", "-ClusterAffinity"}, false},
		"all but that one, swapped": {Plugins{"-ClusterAffinity", "*"}, false},
		"all but another one":       {Plugins{"*", "-TaintToleration"}, true},
		"only a disabled one":       {Plugins{"-TaintToleration"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.plugins.Enabled(PluginClusterAffinity); got != test.want {
				t.Errorf("Enabled = %v, want %v", got, test.want)
			}
		})
	}
}

func TestPluginNames(t *testing.T) {
	ungated := []string{"APIEnablement", "ClusterAffinity", "ClusterEviction", "ClusterLocality", "SpreadConstraint", "TaintToleration"}
	tests := map[string]struct {
		features Features
		want     []string
	}{
		"without features":       {want: ungated},
		"with workload affinity": {Features{WorkloadAffinity: true}, append(ungated[:6:6], "WorkloadAffinity", "WorkloadAntiAffinity")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, PluginNames(test.features)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReason(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"success":                 {nil, "Success"},
		"no cluster fits":         {&FitError{}, "NoClusterFit"},
		"not enough capacity":     {stepError("failed to assign replicas", &UnschedulableError{}), "Unschedulable"},
		"spread cannot be met":    {stepError("failed to select clusters", errTooFewClusters), "SchedulerError"},
		"no placement":            {ErrNoPlacement, "SchedulerError"},
		"an error from elsewhere": {errors.New("x"), "SchedulerError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Reason(test.err); got != test.want {
				t.Errorf("Reason = %q, want %q", got, test.want)
			}
		})
	}
}
