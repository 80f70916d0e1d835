package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// IdentifyManifest returns the identifier of the Work's manifest from which the member object was
// created. This is the first manifest with the same apiVersion, kind, namespace and name. It returns an
// error if there is no such manifest.
func IdentifyManifest(manifests []workv1alpha1.Manifest, object *unstructured.Unstructured) (workv1alpha1.ResourceIdentifier, error) {
	wanted := objectIdentifier(object)
	for ordinal, manifest := range manifests {
		identifier, err := decodeIdentifier(manifest)
		if err != nil {
			return workv1alpha1.ResourceIdentifier{}, fmt.Errorf("reading manifest %d: %w", ordinal, err)
		}
		if identifier == wanted {
			identifier.Ordinal = ordinal
			return identifier, nil
		}
	}
	return workv1alpha1.ResourceIdentifier{}, fmt.Errorf("the Work has no manifest of %s %s", object.GetAPIVersion(), describeObject(object))
}

// IdentifierAt returns the identifier of the manifest with the given ordinal. If an earlier manifest
// describes the same object, the identifier contains the earlier ordinal.
func IdentifierAt(manifests []workv1alpha1.Manifest, ordinal int) (workv1alpha1.ResourceIdentifier, error) {
	identifier, err := decodeIdentifier(manifests[ordinal])
	if err != nil {
		return identifier, err
	}
	if identifier.Kind == "" {
		return identifier, errNoKind
	}
	for earlier := range ordinal {
		if other, err := decodeIdentifier(manifests[earlier]); err == nil && other == identifier {
			identifier.Ordinal = earlier
			return identifier, nil
		}
	}
	identifier.Ordinal = ordinal
	return identifier, nil
}

var errNoKind = errors.New("the manifest has no kind")

// MergeManifestStatus adds an entry to the list, and replaces the existing entry for the same manifest.
// It removes the entries of manifests that the Work no longer has. The result is in the order of the
// manifests.
func MergeManifestStatus(
	statuses []workv1alpha1.ManifestStatus, entry workv1alpha1.ManifestStatus, manifests []workv1alpha1.Manifest,
) []workv1alpha1.ManifestStatus {
	kept := append(DropManifestStatus(statuses, entry.Identifier, manifests), *entry.DeepCopy())
	slices.SortStableFunc(kept, func(a, b workv1alpha1.ManifestStatus) int {
		return a.Identifier.Ordinal - b.Identifier.Ordinal
	})
	return kept
}

// DropManifestStatus removes the entry of the manifest whose member object was deleted, and the entries
// of manifests that the Work no longer has.
func DropManifestStatus(
	statuses []workv1alpha1.ManifestStatus, gone workv1alpha1.ResourceIdentifier, manifests []workv1alpha1.Manifest,
) []workv1alpha1.ManifestStatus {
	kept := make([]workv1alpha1.ManifestStatus, 0, len(statuses)+1)
	for _, status := range statuses {
		if status.Identifier != gone && hasManifest(manifests, status.Identifier) {
			kept = append(kept, *status.DeepCopy())
		}
	}
	return kept
}

// EqualManifestStatuses reports whether both lists are equal. It ignores the order of fields in the
// statuses' JSON.
func EqualManifestStatuses(a, b []workv1alpha1.ManifestStatus) bool {
	return slices.EqualFunc(a, b, func(left, right workv1alpha1.ManifestStatus) bool {
		return left.Identifier == right.Identifier && left.Health == right.Health &&
			equalJSON(rawStatus(left.Status), rawStatus(right.Status))
	})
}

func hasManifest(manifests []workv1alpha1.Manifest, identifier workv1alpha1.ResourceIdentifier) bool {
	if identifier.Ordinal < 0 || identifier.Ordinal >= len(manifests) {
		return false
	}
	actual, err := decodeIdentifier(manifests[identifier.Ordinal])
	actual.Ordinal = identifier.Ordinal
	return err == nil && actual == identifier
}

func objectIdentifier(object *unstructured.Unstructured) workv1alpha1.ResourceIdentifier {
	kind := object.GroupVersionKind()
	return workv1alpha1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// decodeIdentifier returns the manifest's identifier. It decodes only the fields that identify the
// manifest, and does not set the ordinal.
func decodeIdentifier(manifest workv1alpha1.Manifest) (workv1alpha1.ResourceIdentifier, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	// Like DecodeManifest, utiljson distinguishes upper case from lower case in names of fields.
	if err := utiljson.Unmarshal(manifest.Raw, &head); err != nil {
		return workv1alpha1.ResourceIdentifier{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	kind := head.GroupVersionKind()
	return workv1alpha1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
		Namespace: head.Metadata.Namespace, Name: head.Metadata.Name,
	}, nil
}

// equalJSON reports whether both JSON texts have the same content.
func equalJSON(a, b []byte) bool {
	if slices.Equal(a, b) {
		return true
	}
	var left, right any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	return jsonedit.Equal(left, right)
}
