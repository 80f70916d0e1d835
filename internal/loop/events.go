package loop

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karmada.io/karmada/internal/domain/interpreter"
)

// maxTrackedObjects limits how many failures are stored, and how many successes are stored, to
// record each of them only once.
const maxTrackedObjects = 10_000

// Events records the events of one component. It gives all controllers the same rules for events.
//
// Each event is a write that the API server sends to every watcher. By default there are therefore
// only two kinds of events: a decision, recorded once when it is made, and a failure, recorded when
// its cause changes. Successes are reported in conditions. EventModeAll is for tools that wait for
// the events of successes.
type Events struct {
	recorder record.EventRecorder

	mu               sync.Mutex
	reportedFailures *lru.Cache
	// lastSuccess holds the content version of each object at its last success. It is nil in
	// EventModeChanges.
	lastSuccess *lru.Cache
}

// NewEvents returns Events in EventModeChanges that write to the given recorder.
func NewEvents(recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder, reportedFailures: lru.New(maxTrackedObjects)}
}

// failureKey identifies a failure. It contains the cluster, because otherwise two clusters with
// different causes would replace each other's cause, and each retry would record an event.
type failureKey struct {
	uid     types.UID
	reason  string
	cluster string
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
	last, ok := e.reportedFailures.Get(key)
	if ok && last == message {
		e.mu.Unlock()
		return
	}
	e.reportedFailures.Add(key, message)
	e.mu.Unlock()
	e.recorder.Event(object, corev1.EventTypeWarning, reason, message)
}

// ClearFailure removes a stored failure, so that the same failure is recorded again if it occurs
// again. It reports whether a failure was stored.
func (e *Events) ClearFailure(object client.Object, reason string) (failed bool) {
	return e.ClearClusterFailure("", object, reason)
}

// ClearClusterFailure is ClearFailure for one of the clusters of an object.
func (e *Events) ClearClusterFailure(cluster string, object client.Object, reason string) (failed bool) {
	key := failureKey{object.GetUID(), reason, cluster}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, failed = e.reportedFailures.Get(key)
	e.reportedFailures.Remove(key)
	return failed
}

// EventsFor returns the Events of a component. It records events with the recorder of the manager.
func EventsFor(mgr manager.Manager, component string, mode EventMode) *Events {
	// The recorder that replaces this deprecated one writes events of the group events.k8s.io.
	// Existing clients do not read that group.
	return NewEvents(mgr.GetEventRecorderFor(component)).WithMode(mode) //nolint:staticcheck // see above
}
