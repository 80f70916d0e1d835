package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// ingress has no rule for the status: the default reflects the whole status.
func ingress() interpreter.Rules {
	return interpreter.Rules{
		Retain:          retainIngress,
		AggregateStatus: aggregateLoadBalancers,
		IsHealthy:       hasIngressPoint,
		Dependencies:    ingressDependencies,
	}
}

// retainIngress keeps the ingress class that the member cluster set on an Ingress without
// one. The member sets it only at the creation. No controller serves an Ingress that
// loses its class.
func retainIngress(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainUnsetFields(desired, observed, "ingressClassName")
}

// ingressDependencies returns the Secrets with certificates. An entry without a Secret
// uses the certificate of the ingress controller.
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
