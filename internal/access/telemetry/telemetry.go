// Package telemetry answers: how does a component record what it does? It offers one way for
// events, so that all controllers record the same situations in the same way.
//
// An event is a write that every watcher pays for. So there are only two kinds by default: a
// decision, recorded once when it is made, and a failure, recorded when its cause changes.
// Successes show in conditions. For tools that wait for the events of successes there is the
// mode All.
package telemetry

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxTrackedObjects limits the failures, and the successes, that are kept to record each only
// once.
const maxTrackedObjects = 10_000

// Events records the events of one component.
type Events struct {
	recorder record.EventRecorder

	mu               sync.Mutex
	reportedFailures *lru.Cache
	// lastSuccess holds the content version of each object at its last success; nil in the
	// mode Changes.
	lastSuccess *lru.Cache
}

// NewEvents returns Events that write to a recorder, in the mode Changes.
func NewEvents(recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder, reportedFailures: lru.New(maxTrackedObjects)}
}

// failureKey identifies a failure. It contains the cluster: otherwise clusters with different
// causes would each cause an event at every retry.
type failureKey struct {
	uid     types.UID
	reason  string
	cluster string
}

// RecordDecision records a decision about an object. It must be called when the decision is made, not
// each time it is found to hold.
func (e *Events) RecordDecision(object client.Object, reason, format string, args ...any) {
	e.ClearClusterFailure("", object, reason)
	e.isFirstSuccess(object, reason)
	e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// RecordFailure records why an operation on an object failed, unless the same message was recorded
// before.
func (e *Events) RecordFailure(object client.Object, reason string, err error) {
	e.RecordClusterFailure("", object, reason, err)
}

// RecordClusterFailure is Failed for an operation in one of the clusters of an object.
func (e *Events) RecordClusterFailure(cluster string, object client.Object, reason string, err error) {
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

// ClearFailure drops a failure, so that it is recorded again if it returns. It reports whether
// there was a failure.
func (e *Events) ClearFailure(object client.Object, reason string) (failed bool) {
	return e.ClearClusterFailure("", object, reason)
}

// ClearClusterFailure is Recovered for one of the clusters of an object.
func (e *Events) ClearClusterFailure(cluster string, object client.Object, reason string) (failed bool) {
	key := failureKey{object.GetUID(), reason, cluster}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, failed = e.reportedFailures.Get(key)
	e.reportedFailures.Remove(key)
	return failed
}
