package epoch

import (
	"strings"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// PermissionValue returns the annotation value with which the control plane allows an agent to
// delete the objects of a Work. The value contains the UID of the Work and the ID of the epoch. So
// a permission that is restored from a backup is not valid, because it belongs to an earlier epoch.
func (e Epoch) PermissionValue(work *workv1alpha1.Work) string { return string(work.UID) + "/" + e.ID }

// Permits reports whether the Work has the permission of this epoch to delete its objects.
func (e Epoch) Permits(work *workv1alpha1.Work) bool {
	return work.UID != "" && work.Annotations[workv1alpha1.DeletionAllowedAnnotation] == e.PermissionValue(work)
}

// PermittingEpochID returns the ID of the epoch in which the deletion of the objects of a Work was
// permitted. It returns an empty string if there is no permission for this Work, or if the
// permission contains no epoch.
func PermittingEpochID(work *workv1alpha1.Work) string {
	uid, id, _ := strings.Cut(work.Annotations[workv1alpha1.DeletionAllowedAnnotation], "/")
	if work.UID == "" || uid != string(work.UID) {
		return ""
	}
	return id
}
