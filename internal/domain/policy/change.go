package policy

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// RelevantChange reports whether an update of a template can matter for its
// binding. Only status, managedFields and resourceVersion cannot. Neither object
// is modified.
func RelevantChange(before, after *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(
		without(before.Object, "managedFields", "resourceVersion"),
		without(after.Object, "managedFields", "resourceVersion"),
	)
}

// UserChange reports whether an update of a template contains anything but this
// project's own marks: labels and annotations with ".karmada.io" in their key.
// generation is left out as well, since it follows from the rest.
func UserChange(before, after *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(userPart(before), userPart(after))
}

// UserHash fingerprints the part of a template that is the user's: equal for two
// objects exactly when UserChange is false (up to collisions of 64 bits). It is
// stable across processes and releases, for it is stored.
func UserHash(template *unstructured.Unstructured) (string, error) {
	return hash(template, userPart(template))
}

// RelevantHash fingerprints what can matter of a template for its binding: equal
// for two states exactly when RelevantChange is false (up to collisions of 64
// bits). It is stable across processes and releases, for it is stored.
func RelevantHash(template *unstructured.Unstructured) (string, error) {
	return hash(template, without(template.Object, "managedFields", "resourceVersion"))
}

func hash(template *unstructured.Unstructured, part map[string]any) (string, error) {
	// encoding/json sorts map keys, so the bytes are canonical.
	data, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s/%s: %w", template.GetKind(), template.GetNamespace(), template.GetName(), err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // a hash never fails to write
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

func userPart(template *unstructured.Unstructured) map[string]any {
	object := without(template.Object, "managedFields", "resourceVersion", "generation")
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	for _, field := range []string{"labels", "annotations"} {
		marks, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		// metadata is already a copy of ours; an emptied map equals a missing one.
		delete(metadata, field)
		if rest := usersMarks(marks); len(rest) > 0 {
			metadata[field] = rest
		}
	}
	return object
}

// usersMarks leaves out the keys of this project, but for the one that only users
// set.
func usersMarks(marks map[string]any) map[string]any {
	rest := make(map[string]any, len(marks))
	for key, value := range marks {
		if key == policyv1alpha1.NamespaceSkipAutoPropagationLabel || !strings.Contains(key, ".karmada.io") {
			rest[key] = value
		}
	}
	return rest
}

// without copies object and its metadata, one level deep, and leaves out status
// and the named metadata fields. The values below are shared with the original.
func without(object map[string]any, metadataFields ...string) map[string]any {
	result := make(map[string]any, len(object))
	for key, value := range object {
		if key != "status" {
			result[key] = value
		}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return result
	}
	kept := make(map[string]any, len(metadata))
	for key, value := range metadata {
		if !slices.Contains(metadataFields, key) {
			kept[key] = value
		}
	}
	result["metadata"] = kept
	return result
}
