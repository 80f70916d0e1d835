package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Ownership describes who owns a member object, according to its labels and annotations.
type Ownership int

const (
	// Unmanaged means that the object does not have Karmada's labels and annotations, or that a
	// controller in the member created it and copied them from another object.
	Unmanaged Ownership = iota
	// OwnedElsewhere means that the object's annotations refer to a Work of another cluster, for
	// example in another control plane.
	OwnedElsewhere
	// Owned means that the object was created for a Work that exists and contains the object.
	Owned
	// Adoptable means that the Work for which the object was created does not exist, but that another
	// Work contains a manifest of the same object.
	Adoptable
	// Orphaned means that the Work for which the object was created does not exist, and that no other
	// Work contains the object.
	Orphaned
)

// ManifestIndex is an index of the manifests in one cluster's Works.
type ManifestIndex struct {
	cluster string
	byKey   map[objectKey][]WorkManifest
}

// WorkManifest is one manifest and the name of its Work.
type WorkManifest struct {
	// WorkName is the name of the Work.
	WorkName string
	Manifest *unstructured.Unstructured
}

type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// NewManifestIndex returns an index of the manifests in the given cluster's Works. It returns an error
// if a manifest cannot be decoded, because the manifest's object would otherwise look like an orphan.
func NewManifestIndex(cluster string, works []workv1alpha1.Work) (ManifestIndex, error) {
	claims := ManifestIndex{cluster: cluster, byKey: map[objectKey][]WorkManifest{}}
	for i := range works {
		for ordinal, raw := range works[i].Spec.Workload.Manifests {
			manifest, err := DecodeManifest(raw)
			if err != nil {
				return ManifestIndex{}, fmt.Errorf("manifest %d of Work %s/%s: %w", ordinal, works[i].Namespace, works[i].Name, err)
			}
			key := objectKey{manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace(), manifest.GetName()}
			claims.byKey[key] = append(claims.byKey[key], WorkManifest{WorkName: works[i].Name, Manifest: manifest})
		}
	}
	return claims, nil
}

// OwnershipOf returns the observed object's ownership, and the manifest and name of the Work that
// contains the object. The returned WorkManifest is empty if no Work contains the object. OwnershipOf
// reads only the object's metadata and kind.
func (m ManifestIndex) OwnershipOf(observed *unstructured.Unstructured) (Ownership, WorkManifest) {
	annotations := observed.GetAnnotations()
	namespace, name := annotations[workv1alpha1.WorkNamespaceAnnotation], annotations[workv1alpha1.WorkNameAnnotation]
	switch {
	case !isManaged(observed) || namespace == "" || name == "" || metav1.GetControllerOf(observed) != nil:
		return Unmanaged, WorkManifest{}
	case namespace != ExecutionNamespace(m.cluster):
		return OwnedElsewhere, WorkManifest{}
	}
	holders := m.byKey[objectKey{observed.GroupVersionKind().GroupKind(), observed.GetNamespace(), observed.GetName()}]
	for _, claim := range holders {
		if hasSameOrigin(observed, claim.Manifest) {
			return Owned, claim
		}
	}
	if len(holders) > 0 {
		return Adoptable, holders[0]
	}
	return Orphaned, WorkManifest{}
}

// AdoptObject sets, in place, the labels and annotations with which the given Work takes over the
// observed object.
func AdoptObject(observed *unstructured.Unstructured, owner WorkManifest) {
	labels := map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}
	if id := owner.Manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]; id != "" {
		labels[workv1alpha1.WorkPermanentIDLabel] = id
	}
	addLabels(observed, labels)
	annotations := map[string]string{}
	for _, key := range []string{workv1alpha1.WorkNamespaceAnnotation, workv1alpha1.WorkNameAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation} {
		if value := owner.Manifest.GetAnnotations()[key]; value != "" {
			annotations[key] = value
		}
	}
	addAnnotations(observed, annotations)
}
