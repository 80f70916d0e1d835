package builtin

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func service() interpreter.Rules {
	return interpreter.Rules{
		Retain:          retainService,
		AggregateStatus: aggregateService,
		ReflectStatus:   reflectService,
		IsHealthy:       isServiceHealthy,
	}
}

// retainService keeps the values that the member's API server allocated, and the load balancer class that
// the member's admission set, which is immutable.
func retainService(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	port, err := integerOrZero(observed.Object, "spec", "healthCheckNodePort")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	address, err := text(observed.Object, "spec", "clusterIP")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	retained := copyOnWrite{object: desired}
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
	if err := retainNodePorts(&retained, observed); err != nil {
		return nil, err
	}
	return retainUnsetFields(retained.object, observed, "loadBalancerClass")
}

// retainNodePorts keeps the node ports that the member allocated for desired ports without a node port.
// Ports are identified by number and protocol. A Service of type ClusterIP has no node ports.
func retainNodePorts(retained *copyOnWrite, observed *unstructured.Unstructured) error {
	if kind, err := text(retained.object.Object, "spec", "type"); err != nil ||
		kind != string(corev1.ServiceTypeNodePort) && kind != string(corev1.ServiceTypeLoadBalancer) {
		return err
	}
	keyOf := func(port map[string]any) string {
		if port["protocol"] == nil {
			return fmt.Sprintf("%v/%s", port["port"], corev1.ProtocolTCP)
		}
		return fmt.Sprintf("%v/%v", port["port"], port["protocol"])
	}
	allocated := map[string]any{}
	for _, port := range mapsAt(observed.Object, "spec", "ports") {
		allocated[keyOf(port)] = port["nodePort"]
	}
	desired, changed := mapsAt(retained.object.Object, "spec", "ports"), false
	ports := make([]any, len(desired))
	for i, port := range desired {
		if nodePort := allocated[keyOf(port)]; nodePort != nil && port["nodePort"] == nil {
			port, changed = maps.Clone(port), true
			port["nodePort"] = nodePort
		}
		ports[i] = port
	}
	if !changed {
		return nil
	}
	return retained.set(ports, "spec", "ports")
}

// mapsAt returns the maps in the list at path. It returns nil if an entry is not a map, so that the API
// server rejects a malformed list.
func mapsAt(object map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	entries := make([]map[string]any, 0, len(list))
	for _, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		entries = append(entries, entry)
	}
	return entries
}

// isLoadBalancer reports whether the Service has the type LoadBalancer. Other Services have no status to
// reflect.
func isLoadBalancer(service *unstructured.Unstructured) (bool, error) {
	kind, err := text(service.Object, "spec", "type")
	return kind == string(corev1.ServiceTypeLoadBalancer), err
}

func reflectService(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
	hasLoadBalancer, err := isLoadBalancer(memberObject)
	if err != nil || !hasLoadBalancer {
		return nil, err
	}
	return reflectFields("loadBalancer")(ctx, memberObject)
}

func aggregateService(
	ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	hasLoadBalancer, err := isLoadBalancer(template)
	if err != nil {
		return nil, err
	}
	if !hasLoadBalancer {
		return template, nil
	}
	return aggregateLoadBalancers(ctx, template, items)
}

func isServiceHealthy(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	hasLoadBalancer, err := isLoadBalancer(memberObject)
	if err != nil || !hasLoadBalancer {
		return err == nil, err
	}
	return hasIngressPoint(ctx, memberObject)
}
