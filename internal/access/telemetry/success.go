package telemetry

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

// Mode selects the successes that a component records as events.
type Mode string

const (
	// ModeChanges is the mode in which only decisions and failures are events.
	ModeChanges Mode = "changes"
	// ModeAll is the mode in which each success is also an event, once after each change of the
	// object and after each start of the component.
	ModeAll Mode = "all"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeChanges, ModeAll} }

// ParseMode parses the name of a mode.
func ParseMode(text string) (Mode, error) {
	if mode := Mode(text); slices.Contains(Modes(), mode) {
		return mode, nil
	}
	return "", fmt.Errorf("%q: must be one of %s", text, strings.Join([]string{string(ModeChanges), string(ModeAll)}, ", "))
}

// WithMode sets the mode and returns the events.
func (e *Events) WithMode(mode Mode) *Events {
	e.lastSuccess = nil
	if mode == ModeAll {
		e.lastSuccess = lru.New(maxTrackedObjects)
	}
	return e
}

// RecordSuccess records a Normal event, only in the mode All, and only for the first success with
// this reason since the object changed. A decision with the same reason counts as success.
func (e *Events) RecordSuccess(object client.Object, reason, format string, args ...any) {
	if e.isFirstSuccess(object, reason) {
		e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
	}
}

// isFirstSuccess stores a success and reports whether it is the first for the current content
// of the object. It reports false in the mode Changes.
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

// contentVersion identifies the content of an object without its metadata and status. For
// kinds without a generation it is a hash of the content.
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
