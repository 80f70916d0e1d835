package policy

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// HasRelevantChange reports whether the template's update can change its binding, that is, changes more
// than its status, managedFields and resourceVersion.
func HasRelevantChange(before, after *unstructured.Unstructured) bool {
	older, _ := before.Object["metadata"].(map[string]any)
	newer, _ := after.Object["metadata"].(map[string]any)
	return !jsonedit.EqualFields(before.Object, after.Object, "metadata", "status") ||
		!jsonedit.EqualFields(older, newer, "managedFields", "resourceVersion")
}

// HasUserChange reports whether the template's update changes more than Karmada's metadata, which are
// labels and annotations whose keys contain clusterv1alpha1.DomainSuffix.
func HasUserChange(before, after *unstructured.Unstructured) bool {
	return !jsonedit.EqualFields(userContent(before), userContent(after))
}

// UserHash returns a hash of the template's content that users write. Two states have equal hashes if
// and only if HasUserChange returns false, except for collisions. The 64-bit hash is stored, so it must
// not change between releases.
func UserHash(template *unstructured.Unstructured) (string, error) {
	return hashContent(template, userContent(template))
}

// RelevantHash returns a hash of the template's content that can change its binding. Two states have
// equal hashes if and only if HasRelevantChange returns false, except for collisions. The 64-bit hash
// is stored, so it must not change between releases.
func RelevantHash(template *unstructured.Unstructured) (string, error) {
	return hashContent(template, copyWithout(template.Object, "managedFields", "resourceVersion"))
}

func hashContent(template *unstructured.Unstructured, content map[string]any) (string, error) {
	// Map keys are sorted, so equal content gives equal bytes.
	data, err := jsonedit.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s/%s: %w", template.GetKind(), template.GetNamespace(), template.GetName(), err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // hash.Hash never returns an error
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

func userContent(template *unstructured.Unstructured) map[string]any {
	object := copyWithout(template.Object, "managedFields", "resourceVersion", "generation")
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	for _, field := range []string{"labels", "annotations"} {
		values, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		// metadata is a copy, so it can be modified. The field is deleted if no user key remains,
		// because an empty map must compare equal to a missing map.
		delete(metadata, field)
		if rest := onlyUserKeys(values); len(rest) > 0 {
			metadata[field] = rest
		}
	}
	return object
}

// onlyUserKeys returns the values without Karmada's keys. It keeps NamespaceSkipAutoPropagationLabel,
// because only users set it.
func onlyUserKeys(values map[string]any) map[string]any {
	rest := make(map[string]any, len(values))
	for key, value := range values {
		if key == policyv1alpha1.NamespaceSkipAutoPropagationLabel || !strings.Contains(key, clusterv1alpha1.DomainSuffix) {
			rest[key] = value
		}
	}
	return rest
}

// copyWithout returns a shallow copy of the object and its metadata, without the status and the given
// metadata fields. Deeper values are shared with the original.
func copyWithout(object map[string]any, metadataFields ...string) map[string]any {
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
