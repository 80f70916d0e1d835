package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

func newMatchConditions(kind string, operator policyv1alpha1.MatchConditionOperator, status metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
	return []policyv1alpha1.MatchCondition{{ConditionType: kind, Operator: operator, StatusValues: []metav1.ConditionStatus{status}}}
}

func TestClusterTaintPolicyFollowsConditions(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "Failover=true", func(s *controllermanager.Options) {
		// Use long grace periods, because no agent renews the Lease of the cluster.
		s.Monitor.Grace.Period, s.Monitor.Grace.Startup = time.Hour, time.Hour
	})
	cluster := createPullCluster(t, env, "tainted")
	reportDNS := func(status metav1.ConditionStatus) {
		reportConditions(t, env, cluster.Name, readyCondition, metav1.Condition{Type: "ServiceDomainNameResolutionReady", Status: status, Reason: "Detected"})
	}
	broken := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "dns"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			TargetClusters:     &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster.Name}},
			AddOnConditions:    newMatchConditions("ServiceDomainNameResolutionReady", policyv1alpha1.MatchConditionOpNotIn, metav1.ConditionTrue),
			RemoveOnConditions: newMatchConditions("ServiceDomainNameResolutionReady", policyv1alpha1.MatchConditionOpIn, metav1.ConditionTrue),
			Taints:             []policyv1alpha1.Taint{{Key: "dns", Value: "broken", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	labelled := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "labelled"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			TargetClusters:  &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tainted-test": "yes"}}},
			AddOnConditions: newMatchConditions("Ready", policyv1alpha1.MatchConditionOpIn, metav1.ConditionTrue),
			Taints:          []policyv1alpha1.Taint{{Key: "labelled", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	// Report the cluster as lost before its deletion, because no agent withdraws the Works that
	// namespaces of other tests created for the cluster.
	t.Cleanup(func() { reportConditions(t, env, cluster.Name, lostCondition) })
	cleanUp(t, env, broken, labelled)
	reportConditions(t, env, cluster.Name, readyCondition)
	env.Create(t, broken, labelled)
	// The Cluster has no such condition yet, and NotIn does not match a missing condition.
	await(t, env.Karmada, cluster, hasTaints())
	reportDNS(metav1.ConditionFalse)
	await(t, env.Karmada, cluster, hasTaints("dns:NoSchedule"))
	awaitEvent(t, env, cluster, corev1.EventTypeNormal, clusterv1alpha1.EventReasonTaintClusterSucceed)
	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tainted-test": "yes"} })
	await(t, env.Karmada, cluster, hasTaints("dns:NoSchedule", "labelled:NoSchedule"))
	reportDNS(metav1.ConditionTrue)
	await(t, env.Karmada, cluster, hasTaints("labelled:NoSchedule"))

	// A changed policy is applied. The deletion of a policy keeps its taints.
	testenv.Update(t, env.Karmada, labelled, func(p *policyv1alpha1.ClusterTaintPolicy) { p.Spec.Taints[0].Key = "changed" })
	await(t, env.Karmada, cluster, hasTaints("labelled:NoSchedule", "changed:NoSchedule"))
	deleteObject(t, env.Karmada, labelled)
	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	await(t, env.Karmada, cluster, hasTaints())
}
