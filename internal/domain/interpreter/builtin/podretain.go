package builtin

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retainPod keeps what the member cluster has put into the spec: its scheduler, its
// admission, and whoever debugs the Pod there. Nearly nothing of it can be changed
// again, so what the desired Pod leaves open stays as it is in the member.
func retainPod(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	memberSpec, err := nested[map[string]any](observed.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	spec, err := nested[map[string]any](desired.Object, "spec")
	if err != nil || spec == nil {
		return desired, err
	}
	kept := completed(spec, memberSpec)
	for _, field := range []string{"nodeName", "serviceAccountName", "volumes"} {
		take(kept, field, memberSpec[field])
	}
	for _, field := range []string{"initContainers", "containers"} {
		memberContainers, err := nested[[]any](memberSpec, field)
		if err != nil {
			return nil, fmt.Errorf("reading the member object: %w", err)
		}
		containers, err := nested[[]any](spec, field)
		if err != nil {
			return nil, err
		}
		if len(containers) > 0 {
			kept[field] = completedContainers(containers, memberContainers)
		}
	}
	return withField(desired, kept, "spec")
}

// take makes a field what it is in the member, absent if need be.
func take(object map[string]any, field string, value any) {
	delete(object, field)
	if value != nil {
		object[field] = value
	}
}

// completed returns what is said, with what the member holds where nothing is said.
// Neither map is modified; the answer shares parts of both.
func completed(said, held map[string]any) map[string]any {
	all := make(map[string]any, len(said)+len(held))
	maps.Copy(all, said)
	for field, value := range held {
		switch own := all[field].(type) {
		case nil:
			take(all, field, value)
		case map[string]any:
			if inner, ok := value.(map[string]any); ok {
				all[field] = completed(own, inner)
			}
		}
	}
	return all
}

// completedContainers completes the containers by those of the member that have
// equal names, in the order of the member, where its admission may have added some.
// The volume mounts are the member's; its admission adds the one of the service
// account token. Neither list is modified.
func completedContainers(containers, memberContainers []any) []any {
	own := make(map[string]map[string]any, len(containers))
	for _, entry := range containers {
		if container, ok := entry.(map[string]any); ok {
			own[nameOf(container, "name")] = container
		}
	}
	known := make(map[string]bool, len(memberContainers))
	all := make([]any, 0, len(memberContainers))
	for _, entry := range memberContainers {
		memberContainer, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		name := nameOf(memberContainer, "name")
		container := completed(own[name], memberContainer)
		take(container, "volumeMounts", memberContainer["volumeMounts"])
		known[name] = true
		all = append(all, container)
	}
	for _, entry := range containers {
		if !known[nameOf(entry, "name")] {
			all = append(all, entry)
		}
	}
	return all
}
