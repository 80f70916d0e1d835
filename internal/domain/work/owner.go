package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/impersonation"
)

// MayWrite reports whether Karmada may change the observed member object to match the manifest. This is
// the case if the object was created for the same Work, or if the manifest requests to overwrite the
// object and the Work may take it over (see CanTakeOver). It is also the case for the objects with
// which Karmada impersonates users, if they name the manifest's control plane, because an earlier
// Cluster's Work left them in the member. If ok is false, owner is the Work that owns the object. owner
// is empty if no Work owns it.
//
// If a user removes the managed label from a member object, Karmada no longer manages the object. If a
// user created the Work with a manifest without the managed label, the object never had the label. Then
// only the permanent ID shows the owner.
func MayWrite(work *workv1alpha1.Work, observed, manifest *unstructured.Unstructured) (ok bool, owner string) {
	overwrite := workv1alpha2.ResourceConflictResolutionOverwrite
	if manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == overwrite && CanTakeOver(work, manifest) {
		return true, ""
	}
	if !isManaged(observed) {
		return !isManaged(manifest) && hasSameID(observed, manifest), ""
	}
	if hasSameOrigin(observed, manifest) || impersonation.IsSameControlPlane(observed, manifest) {
		return true, ""
	}
	return false, describeOwner(observed)
}

// MayDelete reports whether the member object is deleted together with its Work. An object without the
// managed label and another Work's object are not deleted.
func MayDelete(observed, manifest *unstructured.Unstructured) bool {
	return isManaged(observed) && hasSameOrigin(observed, manifest)
}

// ConflictError reports a member object that Karmada may not change. It describes the owner and how a
// user can make Karmada take over the object. Karmada cannot resolve the conflict itself.
type ConflictError struct {
	Member string
	// Kind and Path identify the object in the member. Path is [namespace/]name.
	Kind, Path string
	// Owner is the Work that owns the object. It is empty if no Work owns the object.
	Owner string
}

// NewConflict returns the error for an observed object that MayWrite refuses to change.
func NewConflict(member string, observed *unstructured.Unstructured, owner string) *ConflictError {
	return &ConflictError{Member: member, Kind: observed.GetKind(), Path: objectPath(observed), Owner: owner}
}

func (c *ConflictError) Error() string {
	// Tools search for the first part of the message, so it must not change.
	text := fmt.Sprintf(
		"resource(kind=%s, %s) already exists in the cluster %s and the %s strategy value is empty, Karmada will not manage this resource",
		c.Kind, c.Path, c.Member, workv1alpha2.ResourceConflictResolutionAnnotation)
	if c.Owner != "" {
		text += fmt.Sprintf("; it belongs to %s: remove it there", c.Owner)
	} else {
		text += "; no Work manages it: delete it in the cluster"
	}
	return text + fmt.Sprintf(", or take it over with conflictResolution: %s in the policy, or with the annotation %s: %s on the template",
		policyv1alpha1.ConflictOverwrite, workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceConflictResolutionOverwrite)
}

func isManaged(object *unstructured.Unstructured) bool {
	return object.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue
}

// hasSameID reports whether the member object has the permanent ID of the manifest's Work.
func hasSameID(observed, manifest *unstructured.Unstructured) bool {
	id := manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	return id != "" && observed.GetLabels()[workv1alpha1.WorkPermanentIDLabel] == id
}

// hasSameOrigin reports whether the member object was created from the manifest's Work. If the object
// or the manifest has no ID, it returns true.
//
// If a Work is deleted while its member is unreachable, and created again when the member is reachable
// again, the new Work has a new ID. The deleted Work's object is then identified by its template's UID,
// because no other control plane has that UID. An object without a template is identified by its Work's
// name.
func hasSameOrigin(observed, manifest *unstructured.Unstructured) bool {
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

func describeOwner(observed *unstructured.Unstructured) string {
	annotations := observed.GetAnnotations()
	id := observed.GetLabels()[workv1alpha1.WorkPermanentIDLabel]
	return fmt.Sprintf("Work %s/%s (permanent id %s)",
		annotations[workv1alpha1.WorkNamespaceAnnotation], annotations[workv1alpha1.WorkNameAnnotation], id)
}
