package detector

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/tenancy"
)

// watchedKinds are the kinds whose objects are watched.
type watchedKinds struct {
	mu      sync.RWMutex
	watches map[schema.GroupVersionKind]*kindWatch
	// deletedDefinitions are the kinds whose definition was deleted and not created again.
	deletedDefinitions sets.Set[schema.GroupKind]
}

type kindWatch struct {
	// stop ends the watch.
	stop  context.CancelFunc
	state servedkinds.WatchState
}

func newWatchedKinds() *watchedKinds {
	return &watchedKinds{watches: map[schema.GroupVersionKind]*kindWatch{}, deletedDefinitions: sets.New[schema.GroupKind]()}
}

// setDefined records whether a definition of the kind exists.
func (k *watchedKinds) setDefined(kind schema.GroupKind, defined bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if defined {
		k.deletedDefinitions.Delete(kind)
		return
	}
	k.deletedDefinitions.Insert(kind)
}

func (k *watchedKinds) has(kind schema.GroupVersionKind) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.watches[kind] != nil
}

func (k *watchedKinds) add(kind schema.GroupVersionKind, stop context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watches[kind] = &kindWatch{stop: stop}
}

// stop ends the watch of a kind.
func (k *watchedKinds) stop(kind schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if entry := k.watches[kind]; entry != nil {
		entry.stop()
		delete(k.watches, kind)
	}
}

// compare returns the new kinds and the removed kinds. A kind whose group could not be listed
// is in neither result. An empty list is ignored, because every API server serves kinds. A
// missing kind is removed at once when its definition was deleted, or when another version of
// it is served, whose watch delivers the same objects. Any other missing kind is removed after
// the grace period, because an API server that has just started may not serve all its kinds
// yet.
func (k *watchedKinds) compare(kinds sets.Set[schema.GroupVersionKind], unlisted sets.Set[string], now time.Time, grace time.Duration) (added, removed []schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	servedKinds := sets.New[schema.GroupKind]()
	for kind := range kinds {
		servedKinds.Insert(kind.GroupKind())
		if k.watches[kind] == nil {
			added = append(added, kind)
		}
	}
	for kind, entry := range k.watches {
		answer, wait := servedkinds.Absent, grace
		switch {
		case kinds.Has(kind):
			answer = servedkinds.Served
		case len(kinds) == 0 || unlisted.Has(kind.Group):
			answer = servedkinds.Unknown
		case k.deletedDefinitions.Has(kind.GroupKind()), servedKinds.Has(kind.GroupKind()):
			wait = 0
		}
		var step servedkinds.WatchAction
		if entry.state, step = entry.state.Next(answer, now, wait); step == servedkinds.StopWatch {
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

// watchableKinds selects the kinds that can hold templates from the served preferred versions.
// Group versions that cannot be parsed are left out.
func watchableKinds(skipped tenancy.SkippedAPIs, served []*metav1.APIResourceList) sets.Set[schema.GroupVersionKind] {
	found := sets.New[schema.GroupVersionKind]()
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if skipped.IsWatchable(version, resource) {
				found.Insert(version.WithKind(resource.Kind))
			}
		}
	}
	return found
}
