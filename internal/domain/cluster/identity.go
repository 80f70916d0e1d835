package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// IdentityCheck is the result of comparing a member with its Cluster's spec.id. The zero value means
// that the member need not be identified, or that no request was sent to it.
type IdentityCheck struct {
	// Proven reports whether the member is the cluster with spec.id.
	Proven bool
	// OtherID is the UID of the member's namespace kube-system if the member is another cluster.
	OtherID string
	// UnknownCause is the reason why the member could not be identified.
	UnknownCause string
}

// maxIDBytes is the maximum length of a cluster's ID, in bytes.
const maxIDBytes = 64

// IsValidID reports whether text can be a cluster's ID, which is a UID. The check is needed because the
// member sends the ID, and a message asks users to pass the ID on a command line.
func IsValidID(text string) bool {
	if text == "" || len(text) > maxIDBytes {
		return false
	}
	for _, b := range []byte(text) {
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && b != '-' {
			return false
		}
	}
	return true
}

// MismatchMessage returns the message that a member is not the registered cluster but another one.
func MismatchMessage(cluster, endpoint, expected, seen string) string {
	return fmt.Sprintf("cluster %s is registered with ID %s, and %s leads to the cluster with ID %s; nothing is written there and nothing is deleted. "+
		"Correct spec.apiEndpoint of the Cluster, or, if the cluster was rebuilt, accept it: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":%q}}'",
		cluster, expected, endpoint, seen, cluster, seen)
}

// IdentityCondition returns the condition for a member's identity. stored is the stored condition, or
// nil if there is none. The result is nil if the stored condition stays unchanged. A cluster that has
// always had the registered ID gets no condition.
func IdentityCondition(stored *metav1.Condition, of IdentityCheck, message string, generation int64, now time.Time) *metav1.Condition {
	condition := &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionIdentityMismatch, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case of.OtherID != "":
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1alpha1.IdentityMismatchReason
	case of.UnknownCause != "" && (stored == nil || stored.Status != metav1.ConditionTrue):
		condition.Status, condition.Reason = metav1.ConditionUnknown, clusterv1alpha1.IdentityUnknownReason
	case of.Proven && stored != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.IdentityProvenReason
		message = "the cluster is the one that was registered"
	default:
		return nil
	}
	condition.Message = conditions.LimitMessage(message)
	return condition
}

// UnidentifiedCondition returns the condition Ready for a cluster that responds but is not proven to be
// the registered cluster.
func UnidentifiedCondition(of IdentityCheck, message string, generation int64, now metav1.Time) metav1.Condition {
	reason := clusterv1alpha1.IdentityUnknownReason
	if of.OtherID != "" {
		reason = clusterv1alpha1.IdentityMismatchReason
	}
	return metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason,
		Message: conditions.LimitMessage(message), ObservedGeneration: generation, LastTransitionTime: now,
	}
}
