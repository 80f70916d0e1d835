package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// ingress leaves the status to the chain, which collects it whole.
func ingress() interpreter.Rules {
	return interpreter.Rules{
		Retain:       retainIngress,
		Aggregate:    uniteLoadBalancers,
		Healthy:      hasEntrance,
		Dependencies: ingressDependencies,
	}
}

// retainIngress keeps the class that the member cluster chose for an Ingress that
// names none. It is chosen once, at the creation; an Ingress that loses it is
// served by nobody.
func retainIngress(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainUnsaid(desired, observed, "ingressClassName")
}

// ingressDependencies returns the certificates. An entry without a Secret uses
// the certificate of the ingress controller and needs nothing.
func ingressDependencies(_ context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	hosts, err := nested[[]any](template.Object, "spec", "tls")
	if err != nil {
		return nil, err
	}
	found := references{}
	for _, host := range hosts {
		found.add(kindSecret, nameOf(host, "secretName"))
	}
	return found.list(template.GetNamespace()), nil
}
