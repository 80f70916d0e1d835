package observe

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

// Mode selects the successes that a component writes as events.
type Mode string

const (
	// Changes is the mode in which only decisions and failures are events.
	Changes Mode = "changes"
	// All is the mode in which each success is an event as well, once for an object
	// after each change of it, and after a start of the component.
	All Mode = "all"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Changes, All} }

// ParseMode returns the mode that a text names.
func ParseMode(text string) (Mode, error) {
	if mode := Mode(text); slices.Contains(Modes(), mode) {
		return mode, nil
	}
	return "", fmt.Errorf("%q: must be one of %s", text, strings.Join([]string{string(Changes), string(All)}, ", "))
}

// In returns the events in a mode.
func (e *Events) In(mode Mode) *Events {
	e.succeeded = nil
	if mode == All {
		e.succeeded = lru.New(remembered)
	}
	return e
}

// Succeeded writes a Normal event, in the mode All only, and only for the first success
// with this reason since the object changed. A decision with the same reason counts.
func (e *Events) Succeeded(object client.Object, reason, format string, args ...any) {
	if e.isFirstSuccess(object, reason) {
		e.recorder.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
	}
}

// isFirstSuccess notes a success and reports whether it is the first in this state of
// the object; it is not in the mode Changes.
func (e *Events) isFirstSuccess(object client.Object, reason string) bool {
	if e.succeeded == nil {
		return false
	}
	key, state := subject{uid: object.GetUID(), reason: reason}, stateOf(object)
	e.mu.Lock()
	defer e.mu.Unlock()
	last, ok := e.succeeded.Get(key)
	e.succeeded.Add(key, state)
	return !ok || last != state
}

// stateOf identifies what an object says apart from its metadata and status. Kinds that
// count no generations are told apart by their content.
func stateOf(object client.Object) string {
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
			_ = encoder.Encode([]any{field, whole.Object[field]}) // a hash takes everything
		}
	}
	return strconv.FormatUint(hash.Sum64(), 16)
}
