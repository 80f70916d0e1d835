package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// IsConfirmed reports whether a user confirmed the deletion of a Work. began is the time at which
// the deletion began. text is the value of the annotation on the Cluster: an RFC 3339 time, which
// confirms every deletion that began at or before that time. Any other text confirms nothing.
func IsConfirmed(text string, began time.Time) bool {
	until, err := time.Parse(time.RFC3339, text)
	return err == nil && !began.After(until)
}

// UserDecision returns the value of workv1alpha1.HeldDeletionAnnotation with which a user confirms
// or rejects the deletion of the Work with the given UID. decision is
// workv1alpha1.ConfirmHeldDeletion or workv1alpha1.RejectHeldDeletion.
func UserDecision(decision string, uid types.UID) string { return decision + "/" + string(uid) }

// ReadUserDecision reports whether a user confirmed or rejected the held deletion of the Work, in the
// annotation of the Work. A decision about another Work of the same name has no effect.
func ReadUserDecision(karmadaWork *workv1alpha1.Work) (isConfirmed, isRejected bool) {
	text := karmadaWork.Annotations[workv1alpha1.HeldDeletionAnnotation]
	isConfirmed = text == UserDecision(workv1alpha1.ConfirmHeldDeletion, karmadaWork.UID)
	return isConfirmed, text == UserDecision(workv1alpha1.RejectHeldDeletion, karmadaWork.UID)
}

// IsDeletionConfirmed reports whether a user confirmed the deletion of the Work, on the Work or for
// all deletions in its cluster.
func IsDeletionConfirmed(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work) bool {
	isConfirmed, _ := ReadUserDecision(karmadaWork)
	return isConfirmed || IsConfirmed(cluster.Annotations[workv1alpha1.ConfirmDeletionsAnnotation], karmadaWork.DeletionTimestamp.Time)
}
