package statuswriter

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// RenderFailures holds the reasons why clusters of a binding do not get the current template:
// their Work could not be rendered. Such a cluster has no Work, or one of an earlier template,
// so no Work can show the reason.
//
// One controller sets the failures. Another one in the same process writes them into the
// status of the binding. They are derived from stored objects: every binding is reconciled
// when a process starts, so nothing is lost with the process.
type RenderFailures struct {
	mu sync.Mutex
	// failures are by binding and cluster. The inner maps are never changed.
	failures    map[types.UID]map[string]string
	subscribers []func(binding types.UID)
	// rendered is the last generation of each binding that was rendered, by name.
	rendered map[types.NamespacedName]renderedState
}

// renderedState is a generation of a binding in which every cluster has its Work or a failure.
type renderedState struct {
	uid        types.UID
	generation int64
}

// NewRenderFailures returns an empty set of failures.
func NewRenderFailures() *RenderFailures {
	return &RenderFailures{failures: map[types.UID]map[string]string{}, rendered: map[types.NamespacedName]renderedState{}}
}

// Set replaces the failures of a binding: for each cluster one sentence with the object, the
// failure and the remedy. An empty map means that there is no failure or the binding is gone.
// Set returns whether the failures changed; only then it calls the subscribers.
func (r *RenderFailures) Set(binding types.UID, failures map[string]string) (changed bool) {
	subscribers, changed := r.store(binding, failures)
	if !changed {
		return false
	}
	// This is outside the lock, because a subscriber may read the failures.
	for _, subscriber := range subscribers {
		subscriber(binding)
	}
	return true
}

func (r *RenderFailures) store(binding types.UID, failures map[string]string) (subscribers []func(types.UID), changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if maps.Equal(r.failures[binding], failures) {
		return nil, false
	}
	if len(failures) == 0 {
		delete(r.failures, binding)
	} else {
		r.failures[binding] = maps.Clone(failures)
	}
	return slices.Clone(r.subscribers), true
}

// Get returns the failures of a binding by cluster, nil if there are none. The map must not be
// changed.
func (r *RenderFailures) Get(binding types.UID) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures[binding]
}

// SetRendered records that in this generation of a binding every cluster has its Work or a
// failure that was set before.
func (r *RenderFailures) SetRendered(key types.NamespacedName, uid types.UID, generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rendered[key] = renderedState{uid: uid, generation: generation}
}

// RenderedGeneration returns the last recorded generation of a binding. It returns 0 if no generation
// was recorded since the process started. If it is older than that of the binding, its Works
// and failures belong to an earlier generation.
func (r *RenderFailures) RenderedGeneration(key types.NamespacedName, uid types.UID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.rendered[key]; last.uid == uid {
		return last.generation
	}
	return 0
}

// DeleteRendered deletes the record of a binding that is gone.
func (r *RenderFailures) DeleteRendered(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rendered, key)
}

// Subscribe calls a function with each binding whose failures change from now on. The call
// comes from the goroutine that sets them, so the function must not block.
func (r *RenderFailures) Subscribe(subscriber func(binding types.UID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, subscriber)
}
