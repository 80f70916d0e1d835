package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// TestFederatedResourceQuota scales a workload beyond a quota and then raises the quota.
func TestFederatedResourceQuota(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: objectMeta(namespace, "team")}
	quota.Spec.Overall = cpus("4")
	quota.Spec.StaticAssignments = []policyv1alpha1.StaticClusterAssignment{{ClusterName: member1, Hard: cpus("4")}}
	web := newDeployment(namespace, "web", 3)
	web.Spec.Template.Spec.Containers[0].Resources.Requests = cpus("1")
	deployments := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	createObjects(t, shared, quota, web, selectAll(deployments).propagationPolicy(namespace, member1))
	awaitUsage(t, namespace, "team   (all)     cpu        3      4       75%", "team   member1   cpu        3      4       75%")

	updateObject(t, web, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	awaitWarningEvent(t, web, "ScheduleBindingFailed",
		"FederatedResourceQuota("+namespace+"/team) exceeded for resource cpu: requested sum 5, limit 4.")
	if replicas := memberReplicas(t, web); replicas != 3 {
		t.Errorf("the member runs %d replicas, want 3 as before", replicas)
	}

	updateObject(t, quota, func(q *policyv1alpha1.FederatedResourceQuota) {
		q.Spec.Overall, q.Spec.StaticAssignments[0].Hard = cpus("6"), cpus("6")
	})
	awaitUsage(t, namespace, "team   (all)     cpu        5      6       83%", "team   member1   cpu        5      6       83%")

	// A larger request of the template is not delivered until it fits.
	updateObject(t, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Resources.Requests = cpus("2") })
	awaitWarningEvent(t, web, "ApplyPolicyFailed",
		"FederatedResourceQuota("+namespace+"/team) exceeded for resource cpu: requested sum 10, limit 6.")
	updateObject(t, quota, func(q *policyv1alpha1.FederatedResourceQuota) {
		q.Spec.Overall, q.Spec.StaticAssignments[0].Hard = cpus("20"), cpus("20")
	})
	awaitUsage(t, namespace, "team   (all)     cpu        10     20      50%", "team   member1   cpu        10     20      50%")

	if err := shared.karmada.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "removal of the ResourceQuota in the member", func(ctx context.Context) error {
		return checkAbsent(ctx, shared.members[member1], &corev1.ResourceQuota{ObjectMeta: objectMeta(namespace, "team")})
	})
}

// awaitUsage waits until karmadactl top quota prints the lines.
func awaitUsage(t *testing.T, namespace string, lines ...string) {
	t.Helper()
	eventually(t, "usage of the quota", func(ctx context.Context) error {
		result := shared.karmadactl(ctx, "top", "quota", "-n", namespace)
		for _, line := range lines {
			if !strings.Contains(result.stdout, line) {
				return fmt.Errorf("%q is missing:\n%s%s", line, result.stdout, result.stderr)
			}
		}
		return nil
	})
}

func memberReplicas(t *testing.T, template *appsv1.Deployment) int32 {
	t.Helper()
	stored := &appsv1.Deployment{}
	if err := shared.members[member1].Get(t.Context(), client.ObjectKeyFromObject(template), stored); err != nil {
		t.Fatal(err)
	}
	return *stored.Spec.Replicas
}
