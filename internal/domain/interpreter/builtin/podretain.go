package builtin

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retainPod keeps the spec fields that the member's scheduler and admission set, and ephemeral containers
// for debugging. Most of the spec is immutable, so fields that the desired Pod does not set keep their
// values in the member.
func retainPod(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	memberSpec, err := nested[map[string]any](observed.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	spec, err := nested[map[string]any](desired.Object, "spec")
	if err != nil || spec == nil {
		return desired, err
	}
	retained := mergeMissing(spec, memberSpec)
	for _, field := range []string{"nodeName", "serviceAccountName", "volumes"} {
		setOrDelete(retained, field, memberSpec[field])
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
			retained[field] = mergeMissingContainers(containers, memberContainers)
		}
	}
	return withField(desired, retained, "spec")
}

// setOrDelete sets the field to the value, or deletes it if the value is nil.
func setOrDelete(object map[string]any, field string, value any) {
	delete(object, field)
	if value != nil {
		object[field] = value
	}
}

// mergeMissing returns a copy of desired with the fields of observed that desired does not set,
// recursively. The result may share memory with both maps.
func mergeMissing(desired, observed map[string]any) map[string]any {
	merged := make(map[string]any, len(desired)+len(observed))
	maps.Copy(merged, desired)
	for field, value := range observed {
		switch current := merged[field].(type) {
		case nil:
			setOrDelete(merged, field, value)
		case map[string]any:
			if inner, ok := value.(map[string]any); ok {
				merged[field] = mergeMissing(current, inner)
			}
		}
	}
	return merged
}

// mergeMissingContainers merges the containers with the member containers of the same name. The
// result has the order of the member, because the admission of the member may have added
// containers. It has the volume mounts of the member, because that admission also adds the mount of
// the service account token. Neither list is modified.
func mergeMissingContainers(containers, memberContainers []any) []any {
	byName := make(map[string]map[string]any, len(containers))
	for _, entry := range containers {
		if container, ok := entry.(map[string]any); ok {
			byName[entryText(container, "name")] = container
		}
	}
	known := make(map[string]bool, len(memberContainers))
	merged := make([]any, 0, len(memberContainers))
	for _, entry := range memberContainers {
		memberContainer, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		name := entryText(memberContainer, "name")
		container := mergeMissing(byName[name], memberContainer)
		setOrDelete(container, "volumeMounts", memberContainer["volumeMounts"])
		known[name] = true
		merged = append(merged, container)
	}
	for _, entry := range containers {
		if !known[entryText(entry, "name")] {
			merged = append(merged, entry)
		}
	}
	return merged
}
