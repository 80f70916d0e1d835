// Package detectortest has the policies that the tests of all parts of the detector use.
package detectortest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// PropagationPolicy returns a policy in the namespace shop that selects the Deployment shop/web. Its
// permanent ID is "id-" and its name.
func PropagationPolicy(name string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Generation: 1,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		}},
	}
}

// ClusterPropagationPolicy returns the policy of the other scope that selects the same Deployment.
func ClusterPropagationPolicy(name string) *policyv1alpha1.ClusterPropagationPolicy {
	return &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1,
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: PropagationPolicy(name).Spec,
	}
}

// WithPriorityClass sets the PriorityClass of a policy and returns the policy.
func WithPriorityClass(p policy.Object, class string) policy.Object {
	p.PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class,
	}
	return p
}

// PriorityClass returns a PriorityClass of Kubernetes with a value.
func PriorityClass(name string, value int64) *unstructured.Unstructured {
	class := &unstructured.Unstructured{Object: map[string]any{"value": value}}
	class.SetAPIVersion("scheduling.k8s.io/v1")
	class.SetKind("PriorityClass")
	class.SetName(name)
	return class
}
