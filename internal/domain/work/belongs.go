package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Belonging is what an object in a member belongs to, by its marks.
type Belonging int

const (
	// Unmarked objects do not bear the marks of Karmada, or a controller in the
	// member made it of one that does.
	Unmarked Belonging = iota
	// Foreign objects have marks that name a Work of another cluster, such as one of another control
	// plane.
	Foreign
	// Owned objects were made for a Work that carries them.
	Owned
	// Wanted objects were made for a Work that does not exist, and another Work carries the
	// same object.
	Wanted
	// Orphan objects were made for a Work that does not exist, and no Work carries them.
	Orphan
)

// Claims are the objects that the Works of one cluster carry.
type Claims struct {
	cluster string
	carried map[carriedObject][]Claim
}

// Claim is one object that a Work carries.
type Claim struct {
	// Work is the name of the Work.
	Work     string
	Manifest *unstructured.Unstructured
}

type carriedObject struct {
	kind            schema.GroupKind
	namespace, name string
}

// NewClaims reads what the Works of a cluster carry. A manifest that cannot be read is an
// error: the object of it would look like an orphan.
func NewClaims(cluster string, works []workv1alpha1.Work) (Claims, error) {
	claims := Claims{cluster: cluster, carried: map[carriedObject][]Claim{}}
	for i := range works {
		for ordinal, raw := range works[i].Spec.Workload.Manifests {
			manifest, err := Decode(raw)
			if err != nil {
				return Claims{}, fmt.Errorf("manifest %d of Work %s/%s: %w", ordinal, works[i].Namespace, works[i].Name, err)
			}
			key := carriedObject{manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace(), manifest.GetName()}
			claims.carried[key] = append(claims.carried[key], Claim{Work: works[i].Name, Manifest: manifest})
		}
	}
	return claims, nil
}

// Of returns what an object in the member belongs to, and the Work that carries it; the
// claim is empty if no Work does. Metadata and kind of the object are enough.
func (c Claims) Of(observed *unstructured.Unstructured) (Belonging, Claim) {
	annotations := observed.GetAnnotations()
	space, name := annotations[workv1alpha1.WorkNamespaceAnnotation], annotations[workv1alpha1.WorkNameAnnotation]
	switch {
	case !managed(observed) || space == "" || name == "" || metav1.GetControllerOf(observed) != nil:
		return Unmarked, Claim{}
	case space != ExecutionNamespace(c.cluster):
		return Foreign, Claim{}
	}
	carrying := c.carried[carriedObject{observed.GroupVersionKind().GroupKind(), observed.GetNamespace(), observed.GetName()}]
	for _, claim := range carrying {
		if sameOrigin(observed, claim.Manifest) {
			return Owned, claim
		}
	}
	if len(carrying) > 0 {
		return Wanted, carrying[0]
	}
	return Orphan, Claim{}
}

// Adopt writes on the object, in place, the marks of a Work that carries it, so that the
// Work takes the object over.
func Adopt(observed *unstructured.Unstructured, of Claim) {
	labels := map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}
	if id := of.Manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]; id != "" {
		labels[workv1alpha1.WorkPermanentIDLabel] = id
	}
	addLabels(observed, labels)
	marks := map[string]string{}
	for _, key := range []string{workv1alpha1.WorkNamespaceAnnotation, workv1alpha1.WorkNameAnnotation, workv1alpha2.ResourceTemplateUIDAnnotation} {
		if value := of.Manifest.GetAnnotations()[key]; value != "" {
			marks[key] = value
		}
	}
	addAnnotations(observed, marks)
}
