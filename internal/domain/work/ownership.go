package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Belonging is the owner of a member object, according to its labels and annotations.
type Belonging int

const (
	// Unmarked objects do not have the labels and annotations of Karmada, or a controller in
	// the member created them from an object that has.
	Unmarked Belonging = iota
	// Foreign objects have annotations that name a Work of another cluster, for example of
	// another control plane.
	Foreign
	// Owned objects were created for a Work that exists and holds them.
	Owned
	// Wanted objects were created for a Work that does not exist, and another Work holds a
	// manifest of the same object.
	Wanted
	// Orphan objects were created for a Work that does not exist, and no Work holds them.
	Orphan
)

// Claims is an index of the manifests in the Works of one cluster.
type Claims struct {
	cluster string
	byKey   map[objectKey][]Claim
}

// Claim is one manifest and the name of its Work.
type Claim struct {
	// Work is the name of the Work.
	Work     string
	Manifest *unstructured.Unstructured
}

type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// NewClaims indexes the manifests of Works of a cluster. A manifest that cannot be decoded is
// an error, because its object would look like an orphan.
func NewClaims(cluster string, works []workv1alpha1.Work) (Claims, error) {
	claims := Claims{cluster: cluster, byKey: map[objectKey][]Claim{}}
	for i := range works {
		for ordinal, raw := range works[i].Spec.Workload.Manifests {
			manifest, err := Decode(raw)
			if err != nil {
				return Claims{}, fmt.Errorf("manifest %d of Work %s/%s: %w", ordinal, works[i].Namespace, works[i].Name, err)
			}
			key := objectKey{manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace(), manifest.GetName()}
			claims.byKey[key] = append(claims.byKey[key], Claim{Work: works[i].Name, Manifest: manifest})
		}
	}
	return claims, nil
}

// Of returns to what a member object belongs, and the Work that holds it. The claim is empty
// if no Work does. The object needs only its metadata and kind.
func (c Claims) Of(observed *unstructured.Unstructured) (Belonging, Claim) {
	annotations := observed.GetAnnotations()
	namespace, name := annotations[workv1alpha1.WorkNamespaceAnnotation], annotations[workv1alpha1.WorkNameAnnotation]
	switch {
	case !isManaged(observed) || namespace == "" || name == "" || metav1.GetControllerOf(observed) != nil:
		return Unmarked, Claim{}
	case namespace != ExecutionNamespace(c.cluster):
		return Foreign, Claim{}
	}
	holders := c.byKey[objectKey{observed.GroupVersionKind().GroupKind(), observed.GetNamespace(), observed.GetName()}]
	for _, claim := range holders {
		if hasSameOrigin(observed, claim.Manifest) {
			return Owned, claim
		}
	}
	if len(holders) > 0 {
		return Wanted, holders[0]
	}
	return Orphan, Claim{}
}

// Adopt sets, in place, the labels and annotations by which the Work that holds the object
// takes it over.
func Adopt(observed *unstructured.Unstructured, owner Claim) {
	labels := map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}
	if id := owner.Manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]; id != "" {
		labels[workv1alpha1.WorkPermanentIDLabel] = id
	}
	addLabels(observed, labels)
	annotations := map[string]string{}
	for _, key := range []string{workv1alpha1.WorkNamespaceAnnotation, workv1alpha1.WorkNameAnnotation, workv1alpha2.ResourceTemplateUIDAnnotation} {
		if value := owner.Manifest.GetAnnotations()[key]; value != "" {
			annotations[key] = value
		}
	}
	addAnnotations(observed, annotations)
}
