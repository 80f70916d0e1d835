package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

func matching(kind string, operator policyv1alpha1.MatchConditionOperator, status metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
	return []policyv1alpha1.MatchCondition{{ConditionType: kind, Operator: operator, StatusValues: []metav1.ConditionStatus{status}}}
}

func TestTaintsOfAClusterFollowPoliciesAboutItsConditions(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "Failover=true", func(s *programs.Settings) {
		// Nobody renews a Lease of the cluster.
		s.Controllers.Monitor.Grace.Period, s.Controllers.Monitor.Grace.Startup = time.Hour, time.Hour
	})
	cluster := inPullMode(t, env, "tainted")
	dns := func(status metav1.ConditionStatus) {
		report(t, env, cluster.Name, reportsReady, metav1.Condition{Type: "ServiceDomainNameResolutionReady", Status: status, Reason: "Detected"})
	}
	broken := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "dns"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			TargetClusters:     &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster.Name}},
			AddOnConditions:    matching("ServiceDomainNameResolutionReady", policyv1alpha1.MatchConditionOpNotIn, metav1.ConditionTrue),
			RemoveOnConditions: matching("ServiceDomainNameResolutionReady", policyv1alpha1.MatchConditionOpIn, metav1.ConditionTrue),
			Taints:             []policyv1alpha1.Taint{{Key: "dns", Value: "broken", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	labelled := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "labelled"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			TargetClusters:  &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tainted-test": "yes"}}},
			AddOnConditions: matching("Ready", policyv1alpha1.MatchConditionOpIn, metav1.ConditionTrue),
			Taints:          []policyv1alpha1.Taint{{Key: "labelled", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	// No agent is there to let go of what the namespaces of other tests left in it.
	t.Cleanup(func() { report(t, env, cluster.Name, reportsLost) })
	cleanUp(t, env, broken, labelled)
	report(t, env, cluster.Name, reportsReady)
	env.Create(t, broken, labelled)
	// Without the condition, NotIn says nothing.
	await(t, env.Karmada, cluster, taintedBy())
	dns(metav1.ConditionFalse)
	await(t, env.Karmada, cluster, taintedBy("dns:NoSchedule"))
	awaitEvent(t, env, cluster, corev1.EventTypeNormal, clusterv1alpha1.EventReasonTaintClusterSucceed)
	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tainted-test": "yes"} })
	await(t, env.Karmada, cluster, taintedBy("dns:NoSchedule", "labelled:NoSchedule"))
	dns(metav1.ConditionTrue)
	await(t, env.Karmada, cluster, taintedBy("labelled:NoSchedule"))

	// A policy that changes is applied, and one that goes takes nothing back.
	testenv.Update(t, env.Karmada, labelled, func(p *policyv1alpha1.ClusterTaintPolicy) { p.Spec.Taints[0].Key = "changed" })
	await(t, env.Karmada, cluster, taintedBy("labelled:NoSchedule", "changed:NoSchedule"))
	deleteObject(t, env.Karmada, labelled)
	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	await(t, env.Karmada, cluster, taintedBy())
}
