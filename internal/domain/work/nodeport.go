package work

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// removeNodePorts removes the node ports of a Service whose annotation says that each member allocates
// its own ports. The control plane allocates node ports too, but Services in a member may already use
// these. Override policies are applied later, so they can still set ports.
func removeNodePorts(manifest *unstructured.Unstructured) {
	if !isService(manifest) || manifest.GetAnnotations()[workv1alpha1.NodePortAllocationAnnotation] != workv1alpha1.NodePortAllocationMember {
		return
	}
	removeField(manifest.Object, "spec", "healthCheckNodePort")
	for _, port := range servicePorts(manifest) {
		delete(port, "nodePort")
	}
}

// NodePorts returns the node ports that a Service's manifest requests, without duplicates.
func NodePorts(manifest *unstructured.Unstructured) []int64 {
	if !isService(manifest) {
		return nil
	}
	var requested []int64
	if port, _, _ := unstructured.NestedInt64(manifest.Object, "spec", "healthCheckNodePort"); port > 0 {
		requested = append(requested, port)
	}
	for _, port := range servicePorts(manifest) {
		if number, _, _ := unstructured.NestedInt64(port, "nodePort"); number > 0 {
			requested = append(requested, number)
		}
	}
	slices.Sort(requested)
	return slices.Compact(requested)
}

func isService(manifest *unstructured.Unstructured) bool {
	return manifest.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service")
}

// servicePorts returns the entries of spec.ports themselves, not copies.
func servicePorts(service *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", "ports")
	entries, _ := list.([]any)
	var ports []map[string]any
	for _, entry := range entries {
		if port, ok := entry.(map[string]any); ok {
			ports = append(ports, port)
		}
	}
	return ports
}
