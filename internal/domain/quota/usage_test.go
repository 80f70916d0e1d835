package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// list returns a resource list of pairs of names and quantities.
func list(pairs ...string) corev1.ResourceList {
	resources := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		resources[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return resources
}

// texts returns the quantities of a resource list as text.
func texts(resources corev1.ResourceList) map[corev1.ResourceName]string {
	found := map[corev1.ResourceName]string{}
	for name, quantity := range resources {
		found[name] = quantity.String()
	}
	return found
}

func TestBindingUsage(t *testing.T) {
	clusters := func(replicas ...int32) []workv1alpha2.TargetCluster {
		targets := make([]workv1alpha2.TargetCluster, len(replicas))
		for i := range replicas {
			targets[i] = workv1alpha2.TargetCluster{Name: string(rune('a' + i)), Replicas: replicas[i]}
		}
		return targets
	}
	component := func(replicas int32, request corev1.ResourceList) workv1alpha2.Component {
		return workv1alpha2.Component{Replicas: replicas,
			ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: request}}
	}
	needs := func(request corev1.ResourceList) *workv1alpha2.ReplicaRequirements {
		return &workv1alpha2.ReplicaRequirements{ResourceRequest: request}
	}
	cases := map[string]struct {
		spec workv1alpha2.ResourceBindingSpec
		want corev1.ResourceList
	}{
		"replicas in two clusters": {
			workv1alpha2.ResourceBindingSpec{Clusters: clusters(3, 1), ReplicaRequirements: needs(list("cpu", "500m", "memory", "1Gi"))},
			list("cpu", "2", "memory", "4Gi"),
		},
		"an unscheduled workload uses nothing": {
			workv1alpha2.ResourceBindingSpec{Replicas: 4, ReplicaRequirements: needs(list("cpu", "1"))}, list(),
		},
		"components count once in each cluster": {
			workv1alpha2.ResourceBindingSpec{Clusters: clusters(0, 0), Components: []workv1alpha2.Component{
				component(1, list("cpu", "1")), component(3, list("cpu", "2", "memory", "1Gi")), {Replicas: 5},
			}}, list("cpu", "14", "memory", "6Gi"),
		},
		"components without clusters use nothing": {
			workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{component(1, list("cpu", "1"))}}, list(),
		},
		"a workload without requests uses nothing": {workv1alpha2.ResourceBindingSpec{Clusters: clusters(3)}, list()},
		"negative requests and replicas make no room": {
			workv1alpha2.ResourceBindingSpec{Clusters: clusters(3, -5), ReplicaRequirements: needs(list("cpu", "1", "memory", "-1Gi"))},
			list("cpu", "3"),
		},
		"large quantities are exact": {
			workv1alpha2.ResourceBindingSpec{Clusters: clusters(2000000000), ReplicaRequirements: needs(list("memory", "3G"))},
			list("memory", "6E"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := BindingUsage(&tc.spec)
			if !IsEqual(got, tc.want) {
				t.Errorf("usage %v, want %v", texts(got), texts(tc.want))
			}
		})
	}
}

func TestUsageOfReportsOnlyLimitedResources(t *testing.T) {
	quota := &policyv1alpha1.FederatedResourceQuota{}
	quota.Spec.Overall = list("cpu", "10", "memory", "1Gi")
	got := UsageOf(quota, list("cpu", "3", "example.com/gpu", "1"))
	if diff := cmp.Diff(texts(list("cpu", "3")), texts(got)); diff != "" {
		t.Errorf("overallUsed (-want +got):\n%s", diff)
	}
	spec := workv1alpha2.ResourceBindingSpec{
		Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2000000000}},
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: list("memory", "9E")},
	}
	got = UsageOf(quota, BindingUsage(&spec))
	if diff := cmp.Diff(map[corev1.ResourceName]string{"memory": "9223372036854775807"}, texts(got)); diff != "" {
		t.Errorf("overallUsed (-want +got):\n%s", diff)
	}
}

func TestHasMoreRoom(t *testing.T) {
	quota := func(overall, used corev1.ResourceList) *policyv1alpha1.FederatedResourceQuota {
		created := &policyv1alpha1.FederatedResourceQuota{}
		created.Spec.Overall, created.Status.OverallUsed = overall, used
		return created
	}
	cases := map[string]struct {
		before, after *policyv1alpha1.FederatedResourceQuota
		want          bool
	}{
		"a raised limit":              {quota(list("cpu", "1"), list("cpu", "1")), quota(list("cpu", "2"), list("cpu", "1")), true},
		"less usage":                  {quota(list("cpu", "2"), list("cpu", "2")), quota(list("cpu", "2"), list("cpu", "1")), true},
		"no usage any more":           {quota(list("cpu", "2"), list("cpu", "2")), quota(list("cpu", "2"), nil), true},
		"a limit that was removed":    {quota(list("cpu", "2"), nil), quota(nil, nil), true},
		"more usage":                  {quota(list("cpu", "2"), list("cpu", "1")), quota(list("cpu", "2"), list("cpu", "2")), false},
		"a limit that was added":      {quota(nil, nil), quota(list("cpu", "2"), nil), false},
		"limit and usage both raised": {quota(list("cpu", "2"), list("cpu", "1")), quota(list("cpu", "3"), list("cpu", "2")), false},
		"no change":                   {quota(list("cpu", "2"), list("cpu", "1")), quota(list("cpu", "2"), list("cpu", "1")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HasMoreRoom(tc.before, tc.after); got != tc.want {
				t.Errorf("has more room: %v, want %v", got, tc.want)
			}
		})
	}
}

// BenchmarkNamespaceUsage measures what a change of one binding computes again: the usage of a namespace with
// 50 bindings.
func BenchmarkNamespaceUsage(b *testing.B) {
	spec := workv1alpha2.ResourceBindingSpec{
		Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 4}},
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: list("cpu", "250m", "memory", "512Mi")},
	}
	for b.Loop() {
		usage := corev1.ResourceList{}
		for range 50 {
			AddUsage(usage, BindingUsage(&spec))
		}
	}
}
