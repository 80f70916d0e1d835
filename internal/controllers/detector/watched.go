package detector

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/servedkinds"
)

// watchedKinds is the set of kinds whose objects are watched.
type watchedKinds struct {
	mu      sync.RWMutex
	watches map[schema.GroupVersionKind]*kindWatch
	// deletedDefinitions contains the kinds whose definition was deleted and not created again.
	deletedDefinitions sets.Set[schema.GroupKind]
}

type kindWatch struct {
	// stop ends the watch of the kind.
	stop  func()
	state servedkinds.WatchState
}

// newWatchedKinds returns an empty set.
func newWatchedKinds() *watchedKinds {
	return &watchedKinds{watches: map[schema.GroupVersionKind]*kindWatch{}, deletedDefinitions: sets.New[schema.GroupKind]()}
}

// setDefined records whether a definition of the kind exists.
func (w *watchedKinds) setDefined(kind schema.GroupKind, defined bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if defined {
		w.deletedDefinitions.Delete(kind)
		return
	}
	w.deletedDefinitions.Insert(kind)
}

// Has reports whether a kind is watched.
func (w *watchedKinds) Has(kind schema.GroupVersionKind) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.watches[kind] != nil
}

// Among returns the watched kinds that are in a set.
func (w *watchedKinds) Among(set interpreter.Kinds) []schema.GroupVersionKind {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var found []schema.GroupVersionKind
	for kind := range w.watches {
		if set.Has(kind) {
			found = append(found, kind)
		}
	}
	return sortKinds(found)
}

// Add adds a kind. stop is called to end the watch of the kind.
func (w *watchedKinds) Add(kind schema.GroupVersionKind, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[kind] = &kindWatch{stop: stop}
}

// Stop ends the watch of a kind and removes the kind. stop is called without the lock, because it
// waits for the handlers of the kind, which use w.
func (w *watchedKinds) Stop(kind schema.GroupVersionKind) {
	w.mu.Lock()
	entry := w.watches[kind]
	delete(w.watches, kind)
	w.mu.Unlock()
	if entry != nil {
		entry.stop()
	}
}

// Remove removes a kind without ending its watch.
func (w *watchedKinds) Remove(kind schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watches, kind)
}

// compare returns the new kinds and the removed kinds. It returns no kind of a group that could not
// be listed. It ignores an empty list, because every API server serves kinds. A missing kind is
// removed at once if its definition was deleted, or if another version of the kind is served,
// because the watch of that version delivers the same objects. Any other missing kind is removed
// only after the grace period, because an API server that has just started may not serve all kinds
// yet.
func (w *watchedKinds) compare(kinds sets.Set[schema.GroupVersionKind], unlisted sets.Set[string], now time.Time,
	grace time.Duration) (added, removed []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	servedKinds := sets.New[schema.GroupKind]()
	for kind := range kinds {
		servedKinds.Insert(kind.GroupKind())
		if w.watches[kind] == nil {
			added = append(added, kind)
		}
	}
	for kind, entry := range w.watches {
		availability, wait := servedkinds.NotServed, grace
		switch {
		case kinds.Has(kind):
			availability = servedkinds.Served
		case len(kinds) == 0 || unlisted.Has(kind.Group):
			availability = servedkinds.Unknown
		case w.deletedDefinitions.Has(kind.GroupKind()), servedKinds.Has(kind.GroupKind()):
			wait = 0
		}
		var step servedkinds.WatchAction
		if entry.state, step = entry.state.Next(availability, now, wait); step == servedkinds.StopWatch {
			removed = append(removed, kind)
		}
	}
	return sortKinds(added), sortKinds(removed)
}

func sortKinds(all []schema.GroupVersionKind) []schema.GroupVersionKind {
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return all
}
