package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// MayWrite tells whether the object that is already in the member may become what
// the manifest says: it was created for the same Work, or the manifest demands to
// overwrite and the Work may do so: see TakesOver. If not, owner names the Work that has the object, or is empty when
// it is under nobody's care.
//
// Taking the managed label off an object in the member withdraws it from us. A
// manifest that a user wrote without the label never gave it to the object; then
// the permanent id alone tells.
func MayWrite(of *workv1alpha1.Work, observed, manifest *unstructured.Unstructured) (ok bool, owner string) {
	overwrite := workv1alpha2.ResourceConflictResolutionOverwrite
	if manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite && TakesOver(of, manifest) {
		return true, ""
	}
	if !managed(observed) {
		return !managed(manifest) && sameID(observed, manifest), ""
	}
	if sameOrigin(observed, manifest) {
		return true, ""
	}
	return false, ownerOf(observed)
}

// MayDelete tells whether the object in the member goes when its Work goes. An
// object without the managed label, or of another Work, stays.
func MayDelete(observed, manifest *unstructured.Unstructured) bool {
	return managed(observed) && sameOrigin(observed, manifest)
}

// ConflictError says that an object in a member is not ours to change, whose it
// is and how to take it over. It is the user's to resolve.
type ConflictError struct {
	Member string
	// Kind, Path: what is in the way; the path is [namespace/]name.
	Kind, Path string
	// Owner is the Work that has the object; empty when there is none.
	Owner string
}

// NewConflict describes why MayWrite refused the observed object.
func NewConflict(member string, observed *unstructured.Unstructured, owner string) *ConflictError {
	return &ConflictError{Member: member, Kind: observed.GetKind(), Path: path(observed), Owner: owner}
}

func (e *ConflictError) Error() string {
	// Tools look for the first part of the message; it stays as it always was.
	text := fmt.Sprintf(
		"resource(kind=%s, %s) already exists in the cluster %s and the %s strategy value is empty, Karmada will not manage this resource",
		e.Kind, e.Path, e.Member, workv1alpha2.ResourceConflictResolutionAnnotation)
	if e.Owner != "" {
		text += fmt.Sprintf("; it belongs to %s: remove it there", e.Owner)
	} else {
		text += "; nobody manages it: delete it in the cluster"
	}
	return text + fmt.Sprintf(", or set the annotation %s: %s on the template to take it over",
		workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceConflictResolutionOverwrite)
}

func managed(object *unstructured.Unstructured) bool {
	return object.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue
}

// sameID tells whether the member object bears the permanent id of the manifest's
// Work.
func sameID(observed, manifest *unstructured.Unstructured) bool {
	id := manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	return id != "" && observed.GetLabels()[workv1alpha1.WorkPermanentIDLabel] == id
}

// sameOrigin tells whether the member object was made from the manifest's Work.
// Without an id on either side there is nothing to hold against it.
//
// A Work that is deleted while its member is out of reach, and made again when
// the member is back, has a new id. What it left behind is known by the template
// it was made of, which no other control plane has; and if it was made of none,
// by the Work's name.
func sameOrigin(observed, manifest *unstructured.Unstructured) bool {
	left := observed.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	right := manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	if left == "" || right == "" || left == right {
		return true
	}
	before, now := observed.GetAnnotations(), manifest.GetAnnotations()
	template := now[workv1alpha2.ResourceTemplateUIDAnnotation]
	if before[workv1alpha2.ResourceTemplateUIDAnnotation] != template {
		return false
	}
	if template != "" {
		return true
	}
	return now[workv1alpha1.WorkNameAnnotation] != "" &&
		before[workv1alpha1.WorkNameAnnotation] == now[workv1alpha1.WorkNameAnnotation] &&
		before[workv1alpha1.WorkNamespaceAnnotation] == now[workv1alpha1.WorkNamespaceAnnotation]
}

func ownerOf(observed *unstructured.Unstructured) string {
	annotations := observed.GetAnnotations()
	id := observed.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	return fmt.Sprintf("Work %s/%s (permanent id %s)",
		annotations[workv1alpha1.WorkNamespaceAnnotation], annotations[workv1alpha1.WorkNameAnnotation], id)
}
