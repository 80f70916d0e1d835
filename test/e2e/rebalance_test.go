package e2e

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// TestRebalance returns a workload to its first cluster affinity group, which fits again.
func TestRebalance(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	exists := func(*appsv1.Deployment) bool { return true }
	first := policyv1alpha1.ClusterAffinityTerm{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{namespace: "first"}},
	}}
	second := policyv1alpha1.ClusterAffinityTerm{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{member1}}}
	deployments := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	spread := selectAll(deployments).propagationPolicy(namespace)
	spread.Spec.Placement = policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{first, second}}
	web := newDeployment(namespace, "web", 1)
	createObjects(t, shared, web, spread)
	awaitDeployment(t, member1, web, "copy", exists)

	labelled := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member2}}
	updateObject(t, labelled, func(c *clusterv1alpha1.Cluster) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[namespace] = "first"
	})
	result := shared.karmadactl(t.Context(), "rebalance", "deployment/web", "-n", namespace)
	if result.code != 0 || !strings.Contains(result.stdout, member1+":1   "+member2+":1   moved") {
		t.Errorf("exit code %d\n%s%s", result.code, result.stdout, result.stderr)
	}
	awaitDeployment(t, member2, web, "copy", exists)
	eventually(t, "removal of the old copy", func(ctx context.Context) error {
		return checkAbsent(ctx, shared.members[member1], web.DeepCopy())
	})
}
