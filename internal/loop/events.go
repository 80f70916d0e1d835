package loop

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karmada.io/karmada/internal/domain/interpreter"
)

const (
	// maxTrackedSuccesses is the maximum number of stored successes.
	maxTrackedSuccesses = 10_000
	// failurePeriod is how long a failure is stored at least after its last occurrence. It must be
	// longer than the delay between two retries.
	failurePeriod = time.Hour
)

// Events records the events of one component. It gives all controllers the same rules for events.
//
// Each event is a write that the API server sends to every watcher. By default there are therefore
// only two kinds of events: a decision, recorded once when it is made, and a failure, recorded when
// its cause changes. Successes are reported in conditions. EventModeAll is for tools that wait for
// the events of successes.
type Events struct {
	recorder record.EventRecorder

	mu               sync.Mutex
	reportedFailures recentFailures
	// lastSuccess holds the content version of each object at its last success. It is nil in
	// EventModeChanges.
	lastSuccess *lru.Cache
}

// NewEvents returns Events in EventModeChanges that write to the given recorder.
func NewEvents(recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder}
}

// failureKey identifies a failure. It contains the cluster, because otherwise two clusters with
// different causes would replace each other's cause, and each retry would record an event.
type failureKey struct {
	uid     types.UID
	reason  string
	cluster string
}

// recentFailures stores the messages of failures until they no longer occur, for example because
// their objects were deleted. Their number is not limited, because without its message each retry of
// a failure would record an event.
type recentFailures struct {
	// current contains the failures that occurred after periodStart, and previous those of the period
	// before.
	current, previous map[failureKey]string
	periodStart       time.Time
}

// swap stores the message of a failure and returns the stored message.
func (r *recentFailures) swap(key failureKey, message string) (stored string, isStored bool) {
	if now := time.Now(); r.current == nil || now.Sub(r.periodStart) >= failurePeriod {
		r.previous, r.current, r.periodStart = r.current, map[failureKey]string{}, now
	}
	stored, isStored = r.remove(key)
	r.current[key] = message
	return stored, isStored
}

// remove removes a failure and returns its stored message.
func (r *recentFailures) remove(key failureKey) (stored string, isStored bool) {
	if stored, isStored = r.current[key]; !isStored {
		stored, isStored = r.previous[key]
	}
	delete(r.current, key)
	delete(r.previous, key)
	return stored, isStored
}

// RecordDecision records a decision about an object. Callers must call it only when they make the
// decision, not in each pass in which the decision still applies.
func (e *Events) RecordDecision(object client.Object, reason, format string, args ...any) {
	e.ClearClusterFailure("", object, reason)
	e.isFirstSuccess(object, reason)
	e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// RecordFailure records why an operation on an object failed, unless the same message is already
// recorded. An interpreter.BusyError is not recorded: retries alternate between it and the cause why
// other calls take long, and each alternation would be an event.
func (e *Events) RecordFailure(object client.Object, reason string, err error) {
	e.RecordClusterFailure("", object, reason, err)
}

// RecordClusterFailure is RecordFailure for an operation in one of the clusters of an object.
func (e *Events) RecordClusterFailure(cluster string, object client.Object, reason string, err error) {
	if interpreter.IsBusy(err) {
		return
	}
	key, message := failureKey{object.GetUID(), reason, cluster}, err.Error()
	e.mu.Lock()
	stored, isStored := e.reportedFailures.swap(key, message)
	e.mu.Unlock()
	if !isStored || stored != message {
		e.recorder.Event(object, corev1.EventTypeWarning, reason, message)
	}
}

// ClearFailure removes a stored failure, so that the same failure is recorded again if it occurs
// again. It reports whether a failure was stored.
func (e *Events) ClearFailure(object client.Object, reason string) (failed bool) {
	return e.ClearClusterFailure("", object, reason)
}

// ClearClusterFailure is ClearFailure for one of the clusters of an object.
func (e *Events) ClearClusterFailure(cluster string, object client.Object, reason string) (failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, failed = e.reportedFailures.remove(failureKey{object.GetUID(), reason, cluster})
	return failed
}

// EventsFor returns the Events of a component. It records events with the recorder of the manager.
func EventsFor(mgr manager.Manager, component string, mode EventMode) *Events {
	// The recorder that replaces this deprecated one writes events of the group events.k8s.io.
	// Existing clients do not read that group.
	return NewEvents(mgr.GetEventRecorderFor(component)).WithMode(mode) //nolint:staticcheck // see above
}
