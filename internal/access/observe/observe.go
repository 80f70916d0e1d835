// Package observe answers "how does a component tell what it does?": one way for
// events, so that every controller speaks of the same things in the same way.
//
// An event is a write that everybody who watches pays for. So there are two
// kinds only: a decision, told once when it is made, and a failure, told when
// its cause changes. That something went as it should is seen in conditions; for
// tools that wait for its events there is the mode All.
package observe

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remembered bounds how many failures are remembered to tell each only once.
const remembered = 10_000

// Events records the events of one component.
type Events struct {
	recorder record.EventRecorder

	mu   sync.Mutex
	told *lru.Cache
	// succeeded holds the state of each object at its last success; nil in the mode
	// Changes.
	succeeded *lru.Cache
}

// NewEvents makes events out of a recorder, in the mode Changes.
func NewEvents(recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder, told: lru.New(remembered)}
}

// subject is what a failure is remembered by. Each cluster fails by itself: were
// they one, clusters with different causes would be told of at every try.
type subject struct {
	uid     types.UID
	reason  string
	cluster string
}

// Decided tells of a decision about an object. Call it when the decision was
// made, not each time it is found to hold.
func (e *Events) Decided(object client.Object, reason, format string, args ...any) {
	e.RecoveredIn("", object, reason)
	e.isFirstSuccess(object, reason)
	e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// Failed tells why something that concerns an object failed, unless the same was
// told before.
func (e *Events) Failed(object client.Object, reason string, err error) {
	e.FailedIn("", object, reason, err)
}

// FailedIn is Failed for what failed in one of the clusters of an object.
func (e *Events) FailedIn(cluster string, object client.Object, reason string, err error) {
	key, message := subject{object.GetUID(), reason, cluster}, err.Error()
	e.mu.Lock()
	last, ok := e.told.Get(key)
	if ok && last == message {
		e.mu.Unlock()
		return
	}
	e.told.Add(key, message)
	e.mu.Unlock()
	e.recorder.Event(object, corev1.EventTypeWarning, reason, message)
}

// Recovered forgets a failure, so that it is told again should it come back, and
// reports whether there was one to forget.
func (e *Events) Recovered(object client.Object, reason string) (failed bool) {
	return e.RecoveredIn("", object, reason)
}

// RecoveredIn is Recovered for one of the clusters of an object.
func (e *Events) RecoveredIn(cluster string, object client.Object, reason string) (failed bool) {
	key := subject{object.GetUID(), reason, cluster}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, failed = e.told.Get(key)
	e.told.Remove(key)
	return failed
}
