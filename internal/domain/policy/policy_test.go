package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func newDeployment(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	return newObject("apps/v1", "Deployment", namespace, name, labels)
}

func newObject(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID("uid-" + "1")
	u.SetResourceVersion("812")
	u.SetLabels(labels)
	return u
}

// policyOption changes a new policy of a test.
type policyOption func(Object)

func newPolicy(namespace, name string, edits ...policyOption) Object {
	var policy Object = &policyv1alpha1.ClusterPropagationPolicy{}
	if namespace != "" {
		policy = &policyv1alpha1.PropagationPolicy{}
	}
	policy.SetNamespace(namespace)
	policy.SetName(name)
	policy.SetLabels(map[string]string{PermanentIDLabel(policy): "id-" + name})
	for _, e := range edits {
		e(policy)
	}
	return policy
}

func withPriority(value int32) policyOption {
	return func(p Object) { p.PropagationSpec().Priority = &value }
}

func withLazyActivation(p Object) {
	p.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation
}

func withDeletionTimestamp(p Object) { p.SetDeletionTimestamp(&metav1.Time{}) }

func withSelectors(selectors ...policyv1alpha1.ResourceSelector) policyOption {
	return func(p Object) {
		p.PropagationSpec().ResourceSelectors = append(p.PropagationSpec().ResourceSelectors, selectors...)
	}
}

var (
	allDeployments  = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	webByName       = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	anyLabels       = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{}}
	labelledWeb     = selectByLabels(map[string]string{"app": "web"})
	labelledOther   = selectByLabels(map[string]string{"app": "other"})
	brokenSelector  = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}}
	otherAPIVersion = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"}
	otherKind       = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "StatefulSet"}
)

func selectByLabels(labels map[string]string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{
		APIVersion: "apps/v1", Kind: "Deployment",
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
	}
}

func inNamespace(selector policyv1alpha1.ResourceSelector, namespace string) policyv1alpha1.ResourceSelector {
	selector.Namespace = namespace
	return selector
}
