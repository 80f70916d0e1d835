package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// TestPromoteDeployment promotes a running Deployment and then changes it through its
// template. The Pods are not recreated by the promotion.
func TestPromoteDeployment(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, web := newConfigMap(namespace, "settings", "theirs"), newDeployment(namespace, "web", 1)
	web.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings.Name}},
	}}
	for _, object := range []client.Object{settings, web} {
		eventually(t, "creating an unmanaged object in "+member1, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(shared.members[member1].Create(ctx, object))
		})
	}
	podBefore := podUID(t, namespace)

	checkOutput(t, runKarmadactl(t, namespace, "promote", "deployment", "web", "-C", member1, "-o", "yaml"),
		"work.karmada.io/conflict-resolution: overwrite\n", "kind: PropagationPolicy\n")
	checkOutput(t, runKarmadactl(t, namespace, "promote", "deployment", "web", "-C", member1, "-d"),
		fmt.Sprintf(`Dependency resource "/v1, Resource=configmaps"(%s/settings) is promoted successfully`, namespace),
		fmt.Sprintf(`Resource "apps/v1, Resource=deployments"(%s/web) is promoted successfully`, namespace))

	isManaged := func(found *appsv1.Deployment) bool {
		return found.UID == web.UID && found.Labels[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue
	}
	awaitDeployment(t, member1, web, "the managed Deployment with the same UID", isManaged)
	if podAfter := podUID(t, namespace); podAfter != podBefore {
		t.Errorf("Pod %s was replaced by Pod %s", podBefore, podAfter)
	}
	checkOutput(t, runKarmadactl(t, namespace, "patch", "deployment", "web", "-p", `{"spec":{"replicas":3}}`), "deployment.apps/web patched\n")
	awaitDeployment(t, member1, web, "a change of the template", func(found *appsv1.Deployment) bool {
		return isManaged(found) && *found.Spec.Replicas == 3
	})
	second := runKarmadactl(t, namespace, "promote", "deployment", "web", "-C", member1)
	second.mustSucceed(t)
	if second.stdout != "" {
		t.Errorf("the second promote prints %s", second.stdout)
	}
}

// podUID returns the UID of the only Pod of the namespace in member1.
func podUID(t *testing.T, namespace string) (uid types.UID) {
	t.Helper()
	eventually(t, "one Pod in "+member1, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := shared.members[member1].List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d Pods", len(pods.Items))
		}
		uid = pods.Items[0].UID
		return nil
	})
	return uid
}
