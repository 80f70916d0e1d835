package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Ownership is the owner of a member object, according to its labels and annotations.
type Ownership int

const (
	// Unmanaged means that the object does not have the labels and annotations of Karmada, or that
	// a controller in the member created it from an object that has them.
	Unmanaged Ownership = iota
	// OwnedElsewhere means that the annotations of the object refer to a Work of another cluster,
	// for example of another control plane.
	OwnedElsewhere
	// Owned means that the object was created for a Work that exists and contains the object.
	Owned
	// Adoptable means that the object was created for a Work that does not exist, and that another
	// Work contains a manifest of the same object.
	Adoptable
	// Orphaned means that the object was created for a Work that does not exist, and that no Work
	// contains the object.
	Orphaned
)

// ManifestIndex is an index of the manifests in the Works of one cluster.
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

// NewManifestIndex returns an index of the manifests in the Works of a cluster. It returns an error
// for a manifest that cannot be decoded, because the object of that manifest would look like an
// orphan.
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

// OwnershipOf returns the ownership of a member object and the manifest of the Work that contains
// the object. The manifest is empty if no Work contains the object. Only the metadata and the kind
// of the object are needed.
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

// AdoptObject sets, in place, the labels and annotations with which the Work that contains the
// object takes the object over.
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
