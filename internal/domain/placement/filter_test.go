package placement

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestFilters(t *testing.T) {
	strategyless := policyv1alpha1.Placement{}
	tolerating := func(tolerations ...corev1.Toleration) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterTolerations: tolerations}
	}
	spreading := func(fields ...policyv1alpha1.SpreadFieldValue) policyv1alpha1.Placement {
		placement := policyv1alpha1.Placement{}
		for _, field := range fields {
			placement.SpreadConstraints = append(placement.SpreadConstraints, spread(field, 1, 1))
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
		noAPI     = "cluster(s) did not have the API resource"
		untol     = "cluster(s) had untolerated taint {k=v:NoSchedule}"
		mismatch  = "cluster(s) did not match the placement cluster affinity constraint"
		evictions = "cluster(s) is in the process of eviction"
		stranger  = "ResourceBinding with the same affinity group does not target this cluster"
		rival     = "cluster already has workload with the same anti-affinity group"
	)
	tests := map[string]struct {
		cluster   *clusterv1alpha1.Cluster
		placement policyv1alpha1.Placement
		change    func(*workv1alpha2.ResourceBindingSpec)
		features  Features
		plugins   Plugins
		peers     Peers
		now       time.Time
		want      string // reason, empty if the cluster passes
	}{
		"a fitting cluster passes":                       {cluster: member("a")},
		"the API is missing":                             {cluster: member("a", withoutAPIs), want: noAPI},
		"the API is missing where the template runs":     {cluster: member("a", withoutAPIs), change: present},
		"an untolerated taint":                           {cluster: member("a", taint), want: untol},
		"a NoExecute taint":                              {cluster: member("a", tainted("k", "", corev1.TaintEffectNoExecute)), want: "cluster(s) had untolerated taint {k=:NoExecute}"},
		"a PreferNoSchedule taint keeps nothing out":     {cluster: member("a", tainted("k", "v", corev1.TaintEffectPreferNoSchedule))},
		"a taint where the template runs":                {cluster: member("a", taint), change: present},
		"the first untolerated of several taints":        {cluster: member("a", tainted("t", "v", "NoSchedule"), taint), placement: tolerating(corev1.Toleration{Key: "t", Value: "v"}), want: untol},
		"a toleration that equals":                       {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Equal", Value: "v", Effect: "NoSchedule"})},
		"a toleration without operator means equal":      {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Value: "w"}), want: untol},
		"a toleration of whatever value":                 {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Exists"})},
		"a toleration of everything":                     {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Operator: "Exists"})},
		"a toleration of another effect":                 {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute"}), want: untol},
		"a toleration of another key":                    {cluster: member("a", taint), placement: tolerating(corev1.Toleration{Key: "l", Operator: "Exists"}), want: untol},
		"comparing tolerations are not supported":        {cluster: member("a", tainted("k", "5", "NoSchedule")), placement: tolerating(corev1.Toleration{Key: "k", Operator: "Gt", Value: "1"}), want: "cluster(s) had untolerated taint {k=5:NoSchedule}"},
		"the affinity does not match":                    {cluster: member("a"), placement: policyv1alpha1.Placement{ClusterAffinity: named("b")}, want: mismatch},
		"the affinity does not match where it runs":      {cluster: member("a"), placement: policyv1alpha1.Placement{ClusterAffinity: named("b")}, change: present, want: mismatch},
		"spread by provider, the cluster has none":       {cluster: member("a"), placement: spreading("cluster", "provider"), want: "cluster(s) did not have provider property"},
		"spread by region, the cluster has none":         {cluster: member("a"), placement: spreading("cluster", "region"), want: "cluster(s) did not have region property"},
		"spread by zone, the cluster has none":           {cluster: member("a"), placement: spreading("cluster", "zone"), want: "cluster(s) did not have zones property"},
		"spread by zone, the cluster has one":            {cluster: member("a", inZones("z")), placement: spreading("cluster", "zone")},
		"an eviction from the cluster":                   {cluster: member("a"), change: evicting("a"), want: evictions},
		"an eviction from another cluster":               {cluster: member("a"), change: evicting("b")},
		"no peer targets this cluster":                   {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("b")}}, want: stranger},
		"one peer of two targets this cluster":           {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("a", "b"), sets.New("b")}}, want: stranger},
		"all peers target this cluster":                  {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New("a", "b"), sets.New("a")}}},
		"the first of a group goes anywhere":             {cluster: member("a"), change: grouped(near), features: gate},
		"peers without targets say nothing":              {cluster: member("a"), change: grouped(near), features: gate, peers: Peers{Affinity: []sets.Set[string]{sets.New[string]()}}},
		"affinity with the gate off":                     {cluster: member("a"), change: grouped(near), peers: Peers{Affinity: []sets.Set[string]{sets.New("b")}}},
		"a rival targets this cluster":                   {cluster: member("a"), change: grouped(apart), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("b"), sets.New("a")}}, want: rival},
		"a rival targets another cluster":                {cluster: member("a"), change: grouped(apart), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("b")}}},
		"a rival, but the template is there already":     {cluster: member("a"), features: gate, peers: Peers{AntiAffinity: []sets.Set[string]{sets.New("a")}}, change: func(s *workv1alpha2.ResourceBindingSpec) { grouped(apart)(s); present(s) }},
		"a toleration whose time is over":                {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(time.Minute), want: "cluster(s) had untolerated taint {n=:NoExecute}"},
		"a toleration whose time is not over":            {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(59 * time.Second)},
		"a toleration whose time is over, where it runs": {cluster: member("a", addedTaint), placement: tolerating(forAMinute), now: noon.Add(time.Hour), change: present},
		"a cluster being removed has no reason":          {cluster: member("a", beingRemoved), want: "none"},
		"the first filter in the table gives the reason": {cluster: member("a", withoutAPIs, taint), placement: policyv1alpha1.Placement{ClusterAffinity: named("b")}, want: noAPI},
		"a filter switched off":                          {cluster: member("a", withoutAPIs), plugins: Plugins{"*", "-APIEnablement"}, placement: strategyless},
		"only one filter switched on":                    {cluster: member("a", withoutAPIs, taint), plugins: Plugins{"TaintToleration"}, want: untol},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if len(test.placement.SpreadConstraints) > 0 {
				test.placement.ReplicaScheduling = evenly // reads no constraint afterwards
			}
			spec := deployment(1, test.placement)
			if test.change != nil {
				test.change(spec)
			}
			in := input(spec, []*clusterv1alpha1.Cluster{test.cluster}, nil)
			in.Features, in.Plugins, in.Peers, in.Now = test.features, test.plugins, test.peers, test.now
			_, err := Schedule(in)
			want := ""
			switch test.want {
			case "":
			case "none":
				want = "0/1 clusters are available: no cluster exists."
			default:
				want = fmt.Sprintf("0/1 clusters are available: 1 %s.", test.want)
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

func TestFitErrorCountsReasons(t *testing.T) {
	spec := deployment(1, policyv1alpha1.Placement{ClusterAffinity: named("c")})
	clusters := []*clusterv1alpha1.Cluster{member("a"), member("b"), member("c", withoutAPIs)}
	check(t, input(spec, clusters, nil), nil,
		"0/3 clusters are available: 1 cluster(s) did not have the API resource, 2 cluster(s) did not match the placement cluster affinity constraint.")
	check(t, input(spec, nil, nil), nil, "0/0 clusters are available: no cluster exists.")
}

func TestFitErrorSortsReasonsAsText(t *testing.T) {
	err := &FitError{Total: 12, Reasons: map[string]int{"b": 2, "a": 10}}
	if got, want := err.Error(), "0/12 clusters are available: 10 a, 2 b."; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestPlugins(t *testing.T) {
	tests := map[string]struct {
		plugins Plugins
		want    bool
	}{
		"none given means all":      {nil, true},
		"all":                       {Plugins{"*"}, true},
		"that one":                  {Plugins{"ClusterAffinity"}, true},
		"another one":               {Plugins{"TaintToleration"}, false},
		"all but that one":          {Plugins{"*", "-ClusterAffinity"}, false},
		"all but that one, swapped": {Plugins{"-ClusterAffinity", "*"}, false},
		"all but another one":       {Plugins{"*", "-TaintToleration"}, true},
		"only a denial":             {Plugins{"-TaintToleration"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.plugins.Enabled(PluginClusterAffinity); got != test.want {
				t.Errorf("Enabled = %v, want %v", got, test.want)
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
		"too little room":         {stepError("failed to assign replicas", notEnough(3)), "Unschedulable"},
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
