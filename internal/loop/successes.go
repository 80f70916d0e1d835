package loop

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EventMode selects which successes a component records as events.
type EventMode string

const (
	// EventModeChanges is the mode in which only decisions and failures are recorded as events.
	EventModeChanges EventMode = "changes"
	// EventModeAll is the mode in which a success is also recorded as an event: once after each
	// change of the object, and once after each start of the component.
	EventModeAll EventMode = "all"
)

// EventModes returns all modes.
func EventModes() []EventMode { return []EventMode{EventModeChanges, EventModeAll} }

// ParseEventMode parses the name of a mode.
func ParseEventMode(text string) (EventMode, error) {
	if mode := EventMode(text); slices.Contains(EventModes(), mode) {
		return mode, nil
	}
	return "", fmt.Errorf("%q: must be one of %s", text, strings.Join([]string{string(EventModeChanges), string(EventModeAll)}, ", "))
}

// WithMode sets the mode and returns the same Events.
func (e *Events) WithMode(mode EventMode) *Events {
	e.lastSuccess = nil
	if mode == EventModeAll {
		e.lastSuccess = lru.New(maxTrackedSuccesses)
	}
	return e
}

// RecordSuccess records a Normal event for the first success with this reason since the object
// changed. It does nothing in EventModeChanges. A decision with the same reason counts as a
// success.
func (e *Events) RecordSuccess(object client.Object, reason, format string, args ...any) {
	if e.isFirstSuccess(object, reason) {
		e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
	}
}

// isFirstSuccess stores a success and reports whether it is the first one for the current content
// of the object. It reports false in EventModeChanges.
func (e *Events) isFirstSuccess(object client.Object, reason string) bool {
	if e.lastSuccess == nil {
		return false
	}
	key, state := failureKey{uid: object.GetUID(), reason: reason}, contentVersion(object)
	e.mu.Lock()
	defer e.mu.Unlock()
	last, ok := e.lastSuccess.Get(key)
	e.lastSuccess.Add(key, state)
	return !ok || last != state
}

// contentVersion returns a value that changes with the content of an object, without its metadata
// and status. It is the generation, or a hash of the content for kinds without a generation.
func contentVersion(object client.Object) string {
	if generation := object.GetGeneration(); generation != 0 {
		return strconv.FormatInt(generation, 10)
	}
	whole, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object.GetResourceVersion()
	}
	hash := fnv.New64a()
	encoder := json.NewEncoder(hash)
	for _, field := range slices.Sorted(maps.Keys(whole.Object)) {
		if field != "metadata" && field != "status" {
			_ = encoder.Encode([]any{field, whole.Object[field]}) // writing to a hash cannot fail
		}
	}
	return strconv.FormatUint(hash.Sum64(), 16)
}
