package epoch

import (
	"strings"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Permission is what the control plane writes on a Work whose objects an agent may
// delete. It names the Work and the epoch: a permission that comes back with a backup
// belongs to an epoch that is over.
func (e Epoch) Permission(of *workv1alpha1.Work) string { return string(of.UID) + "/" + e.ID }

// Permits reports whether a Work has the permission of this epoch.
func (e Epoch) Permits(of *workv1alpha1.Work) bool {
	return of.UID != "" && of.Annotations[workv1alpha1.DeletionAllowedAnnotation] == e.Permission(of)
}

// PermittedIn returns the identity of the epoch in which the deletion of the objects of a
// Work was permitted. It is empty if there is no permission for this Work, or one without
// an epoch.
func PermittedIn(of *workv1alpha1.Work) string {
	work, id, _ := strings.Cut(of.Annotations[workv1alpha1.DeletionAllowedAnnotation], "/")
	if of.UID == "" || work != string(of.UID) {
		return ""
	}
	return id
}
