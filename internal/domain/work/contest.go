package work

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Contest is what is known of the repairs of one member object. When somebody in
// the member undoes each of them, repairing at once would keep both sides busy
// for ever; so repairs that follow each other closely become slower. The zero
// value is an object that was never repaired.
type Contest struct {
	// Repairs is how many followed each other closely.
	Repairs int
	// Last is when the last one was made.
	Last time.Time
}

const (
	// freeRepairs are made at once: a person who changes an object by hand sees it
	// change back.
	freeRepairs = 5
	// firstDelay before the repair that follows them; each later one takes twice as
	// long, up to lastDelay.
	firstDelay = time.Second
	lastDelay  = time.Minute
	// calmAfter is for how long a repair must last, on top of twice its delay, to
	// end a contest.
	calmAfter = 10 * time.Second
)

// delay is how long the next repair waits after the last.
func (c Contest) delay() time.Duration {
	if c.Repairs < freeRepairs {
		return 0
	}
	return min(firstDelay<<min(c.Repairs-freeRepairs, 10), lastDelay)
}

// calm is when the last repair has lasted.
func (c Contest) calm() time.Time { return c.Last.Add(2*c.delay() + calmAfter) }

// Wait is how long to wait until the next repair may be made; 0 means not at all.
func (c Contest) Wait(now time.Time) time.Duration {
	if c.delay() == 0 {
		return 0
	}
	return max(c.Last.Add(c.delay()).Sub(now), 0)
}

// Repaired is the contest after one more repair.
func (c Contest) Repaired(now time.Time) Contest {
	if now.After(c.calm()) {
		c.Repairs = 0
	}
	return Contest{Repairs: c.Repairs + 1, Last: now}
}

// Rages tells whether repairs do not last, and how long to wait at least before
// saying otherwise.
func (c Contest) Rages(now time.Time) (rages bool, left time.Duration) {
	if c.Repairs < freeRepairs || now.After(c.calm()) {
		return false, 0
	}
	return true, c.calm().Sub(now) + time.Millisecond
}

// Contested is the condition that somebody in the member undoes repairs, given
// what is told about each such object; none means that nobody does any more. The
// time of a transition is left to the caller.
func Contested(of *workv1alpha1.Work, contests []string) metav1.Condition {
	if len(contests) == 0 {
		return metav1.Condition{
			Type: workv1alpha1.WorkDriftContested, Status: metav1.ConditionFalse, ObservedGeneration: of.Generation,
			Reason: workv1alpha1.WorkDriftSettledReason, Message: "Repairs last.",
		}
	}
	message := contests[0]
	if len(contests) > 1 {
		message = fmt.Sprintf("%s (and %d more)", message, len(contests)-1)
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkDriftContested, Status: metav1.ConditionTrue, ObservedGeneration: of.Generation,
		Reason: workv1alpha1.WorkDriftContestedReason, Message: message,
	}
}

// DescribeContest tells which object is contested, by whom, and what to do.
// Observed is the object with its managed fields, nil when it was deleted; ours is
// the name under which we write.
func DescribeContest(cluster string, manifest, observed *unstructured.Unstructured, ours string) string {
	by := "somebody"
	does := "changes"
	switch {
	case observed == nil:
		does = "deletes"
	case !sameOrigin(observed, manifest):
		by = ownerOf(observed)
	default:
		if manager := lastManager(observed, ours); manager != "" {
			by = fmt.Sprintf("field manager %q", manager)
		}
	}
	return fmt.Sprintf("%s in cluster %s: %s %s it again and again after it was repaired, so repairs are slower now; "+
		"let only one of the two decide: write into the template what the other wants, or stop the other", reference(manifest), cluster, by, does)
}

// lastManager is who wrote the object last, apart from ours and from those who
// write a subresource only; empty when the object does not tell.
//
// An API server notes no time of who scales an object, and forgets him when somebody
// else sets the replicas: he is the one if nobody has written since we did.
func lastManager(observed *unstructured.Unstructured, ours string) string {
	var last, own, scaler metav1.ManagedFieldsEntry
	for _, entry := range observed.GetManagedFields() {
		switch {
		case entry.Subresource != "" && entry.Subresource != "scale":
		case entry.Manager == ours:
			own = later(own, entry)
		case entry.Time == nil:
			scaler = entry
		default:
			last = later(last, entry)
		}
	}
	if scaler.Manager != "" && (last.Time == nil || last.Time.Before(own.Time)) {
		return scaler.Manager
	}
	return last.Manager
}

func later(one, other metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	if one.Time == nil || one.Time.Before(other.Time) {
		return other
	}
	return one
}
