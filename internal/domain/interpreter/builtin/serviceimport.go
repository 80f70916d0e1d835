package builtin

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	multiclusterv1alpha1 "karmada.io/karmada/api/multicluster/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

func serviceImport() interpreter.Rules {
	return interpreter.Rules{Dependencies: serviceImportDependencies}
}

// serviceImportDependencies returns references to the derived Service and its EndpointSlices, without
// which the ServiceImport has no endpoints.
func serviceImportDependencies(_ context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	derived := multiclusterv1alpha1.DerivedServicePrefix + template.GetName()
	return []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "Service", Namespace: template.GetNamespace(), Name: derived},
		{
			APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice", Namespace: template.GetNamespace(),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{discoveryv1.LabelServiceName: derived}},
		},
	}, nil
}
