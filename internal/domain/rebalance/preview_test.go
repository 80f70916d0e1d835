package rebalance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
)

func newCluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	created := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceCPU: resource.MustParse("100")}
	created.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: room}
	for _, apply := range change {
		apply(created)
	}
	return created
}

// dividedIn assigns the replicas of a divided workload to one cluster.
func dividedIn(cluster string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster, Replicas: 2}}
		b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}
	}
}

func TestCheckForCluster(t *testing.T) {
	inGroups := func(b *workv1alpha2.ResourceBinding) {
		group := func(name, cluster string) policyv1alpha1.ClusterAffinityTerm {
			return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
		}
		b.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{group("first", "new"), group("second", "old")}
		b.Status.SchedulerObservedAffinityName = "second"
	}
	tests := map[string]struct {
		change  func(*workv1alpha2.ResourceBinding)
		cluster *clusterv1alpha1.Cluster
		reason  string
	}{
		"divided replicas can use the cluster":       {cluster: newCluster("new")},
		"the cluster is in the first affinity group": {change: inGroups, cluster: newCluster("new")},
		"the template is already there":              {change: dividedIn("new"), cluster: newCluster("new"), reason: "already there"},
		"a dependency":                               {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }, cluster: newCluster("new"), reason: "follows the workloads"},
		"suspended scheduling": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}, cluster: newCluster("new"), reason: "suspended"},
		"an affinity for other clusters": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"old"}}
		}, cluster: newCluster("new"), reason: "not selected by the cluster affinity"},
		"a taint": {cluster: newCluster("new", func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}), reason: "untolerated taint"},
		"a kind that the cluster does not serve": {cluster: newCluster("new", func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements = nil
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}}
		}), reason: "does not serve"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(dividedIn("old"))
			if test.change != nil {
				test.change(bound)
			}
			before := bound.DeepCopy()
			isSelected, reason := CheckForCluster(bound, "new", []*clusterv1alpha1.Cluster{newCluster("old"), test.cluster}, noon)
			if isSelected != (test.reason == "") || !strings.Contains(reason, test.reason) || isSelected != (reason == "") {
				t.Errorf("selected: %t, reason %q", isSelected, reason)
			}
			if diff := cmp.Diff(before, bound); diff != "" {
				t.Errorf("the binding changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestPreviewIgnoresCurrentShares(t *testing.T) {
	got := Preview(newBinding(dividedIn("old")), []*clusterv1alpha1.Cluster{newCluster("old"), newCluster("new")}, noon)
	spec := &workv1alpha2.ResourceBindingSpec{Replicas: 2, Clusters: got.Result.Clusters}
	if text := placement.DescribeTargets(spec); got.Err != nil || text != "new:1, old:1" {
		t.Errorf("%s, %v", text, got.Err)
	}
}

func TestProgressOf(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: status, Message: "no room", ObservedGeneration: generation}}
		}
	}
	tests := map[string]struct {
		change  func(*workv1alpha2.ResourceBinding)
		want    Progress
		message string
	}{
		"the request is not stored": {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = nil }, want: Waiting},
		"the request is stored":     {want: Waiting},
		"the scheduler placed the template": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = 3 }, want: Placed,
		},
		"the scheduler found no placement":             {change: condition(metav1.ConditionFalse, 3), want: NotPlaced, message: "no room"},
		"the scheduler found none for an earlier spec": {change: condition(metav1.ConditionFalse, 2), want: Waiting},
		"the scheduling is suspended": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}, want: Skipped, message: "its scheduling is suspended, so it is placed when scheduling is resumed"},
		"a dependency": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement, b.Spec.RequiredBy = nil, []workv1alpha2.BindingSnapshot{{Name: "api"}}
		}, want: Skipped, message: "it is a dependency and goes to the clusters of the workloads that need it; rebalance these workloads"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(func(b *workv1alpha2.ResourceBinding) {
				b.Generation, b.Spec.RescheduleTriggeredAt = 3, new(metav1.NewTime(noon.Add(time.Second)))
			})
			if test.change != nil {
				test.change(bound)
			}
			if got, message := ProgressOf(bound, noon); got != test.want || message != test.message {
				t.Errorf("got %s, %q", got, message)
			}
		})
	}
}
