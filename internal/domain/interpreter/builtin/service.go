package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func service() interpreter.Rules {
	return interpreter.Rules{
		Retain:    retainService,
		Aggregate: aggregateService,
		Status:    collectService,
		Healthy:   isServiceHealthy,
	}
}

// retainService keeps what the API server of the member cluster has allocated, and
// the class of load balancer that its admission chose, which stays for good.
func retainService(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	port, err := count(observed.Object, "spec", "healthCheckNodePort")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	address, err := text(observed.Object, "spec", "clusterIP")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	retained := edit{object: desired}
	if port > 0 {
		if err := retained.set(port, "spec", "healthCheckNodePort"); err != nil {
			return nil, err
		}
	}
	if address != "" {
		if err := retained.set(address, "spec", "clusterIP"); err != nil {
			return nil, err
		}
	}
	return retainUnsaid(retained.object, observed, "loadBalancerClass")
}

// isLoadBalancer reports whether the Service is of the one type that has a
// status worth telling.
func isLoadBalancer(service *unstructured.Unstructured) (bool, error) {
	kind, err := text(service.Object, "spec", "type")
	return kind == string(corev1.ServiceTypeLoadBalancer), err
}

func collectService(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
	balanced, err := isLoadBalancer(memberObject)
	if err != nil || !balanced {
		return nil, err
	}
	return collect("loadBalancer")(ctx, memberObject)
}

func aggregateService(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	balanced, err := isLoadBalancer(template)
	if err != nil {
		return nil, err
	}
	if !balanced {
		return template, nil
	}
	return uniteLoadBalancers(ctx, template, items)
}

func isServiceHealthy(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	balanced, err := isLoadBalancer(memberObject)
	if err != nil || !balanced {
		return err == nil, err
	}
	return hasEntrance(ctx, memberObject)
}
