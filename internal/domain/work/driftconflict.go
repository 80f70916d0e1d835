package work

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// RepairBackoff is the repair history of one member object. If a client in the member reverts each
// repair, immediate repairs would be an endless loop, so the delay increases exponentially with repairs
// in close succession. The zero value means that the object was never repaired.
type RepairBackoff struct {
	// CloseRepairs is the number of repairs in close succession, including the last one.
	CloseRepairs int
	// LastRepair is the time of the last repair.
	LastRepair time.Time
}

const (
	// repairsWithoutDelay is the number of repairs that are made immediately, so that a user who
	// changes an object by hand sees that the change is reverted.
	repairsWithoutDelay = 5
	// initialRepairDelay is the delay before the first repair after repairsWithoutDelay. Each later
	// delay is twice as long, up to maxRepairDelay.
	initialRepairDelay = time.Second
	maxRepairDelay     = time.Minute
	// resetAfter is added to twice the last repair's delay. The drift conflict is over when the last
	// repair has not been reverted for this total time.
	resetAfter = 10 * time.Second
)

// repairDelay returns the minimum time between the last repair and the next one.
func (r RepairBackoff) repairDelay() time.Duration {
	if r.CloseRepairs < repairsWithoutDelay {
		return 0
	}
	return min(initialRepairDelay<<min(r.CloseRepairs-repairsWithoutDelay, 10), maxRepairDelay)
}

// resetTime returns the time at which the drift conflict is over if the last repair is not reverted
// before then.
func (r RepairBackoff) resetTime() time.Time { return r.LastRepair.Add(2*r.repairDelay() + resetAfter) }

// RemainingDelay returns the time until the next repair may be made. The value 0 means immediately.
func (r RepairBackoff) RemainingDelay(now time.Time) time.Duration {
	if r.repairDelay() == 0 {
		return 0
	}
	return max(r.LastRepair.Add(r.repairDelay()).Sub(now), 0)
}

// WithRepair returns the history with one more repair.
func (r RepairBackoff) WithRepair(now time.Time) RepairBackoff {
	if now.After(r.resetTime()) {
		r.CloseRepairs = 0
	}
	return RepairBackoff{CloseRepairs: r.CloseRepairs + 1, LastRepair: now}
}

// IsDriftConflict reports whether the object has a drift conflict, because its repairs were repeatedly
// reverted. left is the minimum time until the conflict can be over.
func (r RepairBackoff) IsDriftConflict(now time.Time) (isConflict bool, left time.Duration) {
	if r.CloseRepairs < repairsWithoutDelay || now.After(r.resetTime()) {
		return false, 0
	}
	return true, r.resetTime().Sub(now) + time.Millisecond
}

// DriftConflictCondition returns the condition DriftConflict. descriptions contains one description for
// each object with a drift conflict. If it is empty, the condition is False. The caller sets the
// transition time.
func DriftConflictCondition(work *workv1alpha1.Work, descriptions []string) metav1.Condition {
	if len(descriptions) == 0 {
		return metav1.Condition{
			Type: workv1alpha1.WorkDriftConflict, Status: metav1.ConditionFalse, ObservedGeneration: work.Generation,
			Reason: workv1alpha1.WorkDriftSettledReason, Message: "Repairs are not undone any more.",
		}
	}
	message := descriptions[0]
	if len(descriptions) > 1 {
		message = fmt.Sprintf("%s (and %d more)", message, len(descriptions)-1)
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkDriftConflict, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkDriftConflictReason, Message: message,
	}
}

// DescribeDriftConflict describes which object has a drift conflict, which client reverts the repairs,
// and what the user can do. observed is the object with its managed fields, or nil if the object was
// deleted. ourManager is Karmada's field manager.
func DescribeDriftConflict(cluster string, manifest, observed *unstructured.Unstructured, ourManager string) string {
	client := "an unknown client"
	action := "changes"
	switch {
	case observed == nil:
		action = "deletes"
	case !hasSameOrigin(observed, manifest):
		client = describeOwner(observed)
	default:
		if manager := lastFieldManager(observed, ourManager); manager != "" {
			client = fmt.Sprintf("field manager %q", manager)
		}
	}
	return fmt.Sprintf("%s in cluster %s: %s %s it again after each repair, so repairs are delayed; "+
		"only one of the two can decide: write into the template what the other client writes, or stop that client", describeObject(manifest),
		cluster, client, action)
}

// lastFieldManager returns the field manager that wrote the object last. It ignores ourManager and
// field managers that write only a subresource other than scale. It returns "" if the managed
// fields do not show the last field manager.
//
// An API server records no time for a write of the subresource scale, and it removes the entry of
// that write when another client sets the replicas. So the client that scaled the object is the
// last one if no other client wrote the object after ourManager.
func lastFieldManager(observed *unstructured.Unstructured, ourManager string) string {
	var last, ourLast, scaler metav1.ManagedFieldsEntry
	for _, entry := range observed.GetManagedFields() {
		switch {
		case entry.Subresource != "" && entry.Subresource != "scale":
		case entry.Manager == ourManager:
			ourLast = laterEntry(ourLast, entry)
		case entry.Time == nil:
			scaler = entry
		default:
			last = laterEntry(last, entry)
		}
	}
	if scaler.Manager != "" && (last.Time == nil || last.Time.Before(ourLast.Time)) {
		return scaler.Manager
	}
	return last.Manager
}

func laterEntry(a, b metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	if a.Time == nil || a.Time.Before(b.Time) {
		return b
	}
	return a
}
