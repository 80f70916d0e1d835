package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// ingress returns the rules for Ingresses. The default rule reflects the complete status.
func ingress() interpreter.Rules {
	return interpreter.Rules{
		Retain:          retainIngress,
		AggregateStatus: aggregateLoadBalancers,
		IsHealthy:       hasIngressPoint,
		Dependencies:    ingressDependencies,
	}
}

// retainIngress keeps the ingress class that the member set on an Ingress without one. The member sets it
// only when the Ingress is created, and no controller serves an Ingress without a class.
func retainIngress(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainUnsetFields(desired, observed, "ingressClassName")
}

// ingressDependencies returns references to the Secrets with certificates. A TLS entry without a Secret
// uses the ingress controller's certificate.
func ingressDependencies(_ context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	hosts, err := nested[[]any](template.Object, "spec", "tls")
	if err != nil {
		return nil, err
	}
	found := references{}
	for _, host := range hosts {
		found.add(kindSecret, entryText(host, "secretName"))
	}
	return found.sorted(template.GetNamespace()), nil
}
