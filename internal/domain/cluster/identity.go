package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Identity is what a look at a member found out about which cluster it is. The zero
// value is a member that need not be identified, or that was not asked.
type Identity struct {
	// Proven reports that the member is the cluster of spec.id.
	Proven bool
	// Seen is the UID of the namespace kube-system of a member that is another cluster.
	Seen string
	// Unknown says why the member could not be identified.
	Unknown string
}

// maxID is the length of the longest identity of a cluster, in bytes.
const maxID = 64

// IsID reports whether a text can be the identity of a cluster, which is a UID. A
// member says which it is, and people are told to put it on a command line.
func IsID(text string) bool {
	if text == "" || len(text) > maxID {
		return false
	}
	for _, b := range []byte(text) {
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && b != '-' {
			return false
		}
	}
	return true
}

// Mismatch is what to say of a member that is another cluster than its Cluster says.
func Mismatch(cluster, endpoint, expected, seen string) string {
	return fmt.Sprintf("cluster %s is registered with ID %s, and %s leads to the cluster with ID %s; nothing is written there and nothing is deleted. "+
		"Correct spec.apiEndpoint of the Cluster, or, if the cluster was rebuilt, accept it: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":%q}}'",
		cluster, expected, endpoint, seen, cluster, seen)
}

// IdentityCondition is what a Cluster says of the identity of its member, given the
// condition that is stored (nil if there is none). nil leaves it as it is: a cluster
// that always was the one it should be says nothing.
func IdentityCondition(stored *metav1.Condition, of Identity, message string, generation int64, now time.Time) *metav1.Condition {
	condition := &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionIdentityMismatch, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case of.Seen != "":
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1alpha1.IdentityMismatchReason
	case of.Unknown != "" && (stored == nil || stored.Status != metav1.ConditionTrue):
		condition.Status, condition.Reason = metav1.ConditionUnknown, clusterv1alpha1.IdentityUnknownReason
	case of.Proven && stored != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.IdentityProvenReason
		message = "the cluster is the one that was registered"
	default:
		return nil
	}
	condition.Message = conditions.Clip(message)
	return condition
}

// Unidentified is the condition Ready of a cluster that answers and is not known to
// be the one that was registered.
func Unidentified(of Identity, message string, generation int64, now metav1.Time) metav1.Condition {
	reason := clusterv1alpha1.IdentityUnknownReason
	if of.Seen != "" {
		reason = clusterv1alpha1.IdentityMismatchReason
	}
	return metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason,
		Message: conditions.Clip(message), ObservedGeneration: generation, LastTransitionTime: now,
	}
}
