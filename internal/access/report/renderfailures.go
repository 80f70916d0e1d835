package report

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Renderings tells why clusters of a binding do not get what its template says
// now: the Work of such a cluster could not be made, so that there is none, or
// only one of an earlier template, and no Work can tell why.
//
// One controller sets what it found, another one, in the same process, puts it
// into the status of the binding. It is derived from what is stored: every
// binding is looked at when a process starts, so losing it loses nothing.
type Renderings struct {
	mu sync.Mutex
	// failures are by binding and cluster. The inner maps are never changed.
	failures    map[types.UID]map[string]string
	subscribers []func(binding types.UID)
	// rendered are the newest states of bindings that were dealt with, by name.
	rendered map[types.NamespacedName]renderedState
}

// renderedState is a state of a binding of which every cluster has its Work, or a
// failure.
type renderedState struct {
	uid        types.UID
	generation int64
}

// NewRenderings knows of no failure.
func NewRenderings() *Renderings {
	return &Renderings{failures: map[types.UID]map[string]string{}, rendered: map[types.NamespacedName]renderedState{}}
}

// Set replaces the failures of a binding: for each cluster the object, what went
// wrong with it and what helps, in one sentence. None means that all is well, or
// that the binding is gone. It returns whether that is news; only then
// subscribers are called.
func (r *Renderings) Set(binding types.UID, failures map[string]string) (changed bool) {
	subscribers, changed := r.store(binding, failures)
	if !changed {
		return false
	}
	// Outside the lock: a subscriber may ask what is new.
	for _, subscriber := range subscribers {
		subscriber(binding)
	}
	return true
}

func (r *Renderings) store(binding types.UID, failures map[string]string) (subscribers []func(types.UID), changed bool) {
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

// Of are the failures of a binding by cluster, nil when there are none. The map
// must not be changed.
func (r *Renderings) Of(binding types.UID) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures[binding]
}

// Conclude notes that in this generation of a binding every cluster has its Work,
// or a failure that was set before.
func (r *Renderings) Conclude(of types.NamespacedName, uid types.UID, generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rendered[of] = renderedState{uid: uid, generation: generation}
}

// Concluded is the newest generation of a binding that was noted, 0 for none: then
// its Works, and the failures, are those of an earlier one, or nobody has looked
// since the process started.
func (r *Renderings) Concluded(of types.NamespacedName, uid types.UID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if noted := r.rendered[of]; noted.uid == uid {
		return noted.generation
	}
	return 0
}

// Forget drops what was noted of a binding that is gone.
func (r *Renderings) Forget(of types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rendered, of)
}

// Subscribe calls a function with each binding whose failures change from now on.
// It is called by whoever sets them and must not wait for anything.
func (r *Renderings) Subscribe(subscriber func(binding types.UID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, subscriber)
}
