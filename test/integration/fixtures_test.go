package integration

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "docker.io/library/nginx:1.27"}}},
			},
		},
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"color": "blue"},
	}
}

// selectorOf returns a selector of exactly one object.
func selectorOf(t testing.TB, object client.Object) policyv1alpha1.ResourceSelector {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return policyv1alpha1.ResourceSelector{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// placementOn returns a placement on the named clusters.
func placementOn(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}

// dividedPlacement returns a placement that divides replicas between clusters by weight.
func dividedPlacement(weights map[string]int64) policyv1alpha1.Placement {
	var clusters []string
	var list []policyv1alpha1.StaticClusterWeight
	for _, name := range []string{member1, member2, member3} {
		if weight, ok := weights[name]; ok {
			clusters = append(clusters, name)
			list = append(list, policyv1alpha1.StaticClusterWeight{
				TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: weight,
			})
		}
	}
	placement := placementOn(clusters...)
	placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference:          &policyv1alpha1.ClusterPreferences{StaticWeightList: list},
	}
	return placement
}

// policyFor returns a policy that propagates exactly the given objects.
func policyFor(t testing.TB, placement policyv1alpha1.Placement, objects ...client.Object) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: objects[0].GetNamespace(), Name: objects[0].GetName()},
		Spec:       policyv1alpha1.PropagationSpec{Placement: placement},
	}
	for _, object := range objects {
		policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, selectorOf(t, object))
	}
	return policy
}

// clusterPolicyFor returns a ClusterPropagationPolicy for exactly the given objects. It is
// deleted when the test ends.
func clusterPolicyFor(t testing.TB, env *testenv.Env, placement policyv1alpha1.Placement, objects ...client.Object) *policyv1alpha1.ClusterPropagationPolicy {
	t.Helper()
	policy := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: objects[0].GetNamespace() + objects[0].GetName()},
		Spec:       policyv1alpha1.PropagationSpec{Placement: placement},
	}
	for _, object := range objects {
		policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, selectorOf(t, object))
	}
	cleanUp(t, env, policy)
	return policy
}
