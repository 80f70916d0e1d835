package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestLeftOut(t *testing.T) {
	tests := map[string]struct {
		edit func(north *clusterv1alpha1.Cluster, f *Facts)
		want LeftOutCluster
	}{
		"a taint": {func(north *clusterv1alpha1.Cluster, _ *Facts) {
			north.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "only", Effect: corev1.TaintEffectNoSchedule}}
		}, LeftOutCluster{Filter: "TaintToleration", Message: "untolerated taint {gpu=only:NoSchedule}"}},
		"a cluster that is not ready": {func(north *clusterv1alpha1.Cluster, _ *Facts) {
			north.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}
			north.Status.Conditions[0].Status, north.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, past
			north.Status.Conditions[0].Message = "connection refused"
		}, LeftOutCluster{
			Filter:  "TaintToleration",
			Message: "untolerated taint {cluster.karmada.io/not-ready=:NoSchedule}; cluster north is not ready since 2026-03-01T11:48:00Z: connection refused",
		}},
		"the kind is not served": {func(north *clusterv1alpha1.Cluster, _ *Facts) { north.Status.APIEnablements = nil },
			LeftOutCluster{Filter: "APIEnablement", Message: "does not serve apps/v1 Deployment"}},
		"no room": {func(north *clusterv1alpha1.Cluster, _ *Facts) {
			north.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = resource.MustParse("200m")
		}, LeftOutCluster{Filter: "AssignReplicas", Message: "fits, but its share is 0 replicas: room for 0; cpu: wants 500m x 6, room for 0"}},
		"the scheduler finds less room than the status shows": {func(_ *clusterv1alpha1.Cluster, f *Facts) {
			bound := f.binding()
			bound.Generation++
			bound.Spec.Replicas = 60
			setScheduled(bound, metav1.ConditionFalse, workv1alpha2.BindingReasonUnschedulable, "Clusters available replicas 0 are not enough to schedule")
		}, LeftOutCluster{Filter: "AssignReplicas", Message: "passes the filters and has room for 20 by its status, but the scheduler found too little room, see schedule: " +
			"an estimator also considers the node selector, the tolerations and the free resources of single nodes"}},
		"the scheduler found too little room for an earlier version": {func(_ *clusterv1alpha1.Cluster, f *Facts) {
			bound := f.binding()
			setScheduled(bound, metav1.ConditionFalse, workv1alpha2.BindingReasonUnschedulable, "Clusters available replicas 0 are not enough to schedule")
			bound.Generation++
			bound.Spec.Replicas = 60
		}, LeftOutCluster{Message: "fits now by its status; the scheduler uses it when it places the workload again, unless an estimator finds less room"}},
		"a terminating cluster": {func(north *clusterv1alpha1.Cluster, _ *Facts) { north.DeletionTimestamp = &past },
			LeftOutCluster{Message: "being removed"}},
		"a cluster that fits now": {func(_ *clusterv1alpha1.Cluster, f *Facts) {
			f.binding().Spec.Placement.ReplicaScheduling = nil
		}, LeftOutCluster{Message: "fits now; the scheduler uses it when it places the workload again; to place the workload again now: karmadactl rebalance deployment.apps/web -n shop"}},
		"a cluster of an earlier affinity group that fits again": {func(_ *clusterv1alpha1.Cluster, f *Facts) {
			group := func(name, cluster string) policyv1alpha1.ClusterAffinityTerm {
				return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
			}
			bound := f.binding()
			bound.Spec.Placement.ReplicaScheduling = nil
			bound.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{group("home", "north"), group("spare", "east")}
			bound.Status.SchedulerObservedAffinityName = "spare"
		}, LeftOutCluster{Filter: "ClusterAffinity", Message: "not selected by the cluster affinity; to place the workload again now: karmadactl rebalance deployment.apps/web -n shop"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := healthyFacts()
			f.binding().Spec.Placement.ClusterAffinity = nil
			test.edit(f.Clusters.Value[1], &f)
			test.want.Cluster = "north"
			if diff := cmp.Diff([]LeftOutCluster{test.want}, Trace(f).LeftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftOutWithoutPlacement(t *testing.T) {
	f := healthyFacts()
	f.binding().Spec.Placement = nil
	if got := Trace(f).LeftOut; got != nil {
		t.Errorf("left out: %+v", got)
	}
}
