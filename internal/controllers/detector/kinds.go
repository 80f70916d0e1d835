package detector

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/served"
)

// kinds are the kinds whose objects are watched.
type kinds struct {
	mu      sync.RWMutex
	watched map[schema.GroupVersionKind]*watched
	// undefined are the kinds whose definition was deleted, and not made anew.
	undefined sets.Set[schema.GroupKind]
}

type watched struct {
	// stop ends the watch.
	stop  context.CancelFunc
	state served.Watch
}

func newKinds() *kinds {
	return &kinds{watched: map[schema.GroupVersionKind]*watched{}, undefined: sets.New[schema.GroupKind]()}
}

// define notes that there is a definition of the kind, or none any more.
func (k *kinds) define(kind schema.GroupKind, defined bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if defined {
		k.undefined.Delete(kind)
		return
	}
	k.undefined.Insert(kind)
}

func (k *kinds) has(kind schema.GroupVersionKind) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.watched[kind] != nil
}

func (k *kinds) add(kind schema.GroupVersionKind, stop context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watched[kind] = &watched{stop: stop}
}

// drop ends the watch of a kind.
func (k *kinds) drop(kind schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if entry := k.watched[kind]; entry != nil {
		entry.stop()
		delete(k.watched, kind)
	}
}

// compare returns which kinds are new and which are gone. A kind whose group could not
// be listed is in neither, and an empty listing shows nothing, for there is no server
// without kinds. An absent kind is gone at once when its definition was deleted, or
// when it is served in another version, whose watch shows the same objects; else once
// it has been absent for as long as patience, for a server that has just started may
// not know all that it serves.
func (k *kinds) compare(kinds sets.Set[schema.GroupVersionKind], unlisted sets.Set[string], now time.Time, patience time.Duration) (added, gone []schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	still := sets.New[schema.GroupKind]()
	for kind := range kinds {
		still.Insert(kind.GroupKind())
		if k.watched[kind] == nil {
			added = append(added, kind)
		}
	}
	for kind, entry := range k.watched {
		answer, wait := served.Absent, patience
		switch {
		case kinds.Has(kind):
			answer = served.Served
		case len(kinds) == 0 || unlisted.Has(kind.Group):
			answer = served.Unknown
		case k.undefined.Has(kind.GroupKind()), still.Has(kind.GroupKind()):
			wait = 0
		}
		var step served.Step
		if entry.state, step = entry.state.Next(answer, now, wait); step == served.End {
			gone = append(gone, kind)
		}
	}
	return sorted(added), sorted(gone)
}

func sorted(all []schema.GroupVersionKind) []schema.GroupVersionKind {
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return all
}

// watchable picks the kinds that can hold templates out of what a server serves
// in preferred versions. What cannot be read is left out.
func watchable(skipped reach.SkippedAPIs, served []*metav1.APIResourceList) sets.Set[schema.GroupVersionKind] {
	found := sets.New[schema.GroupVersionKind]()
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if skipped.Watchable(version, resource) {
				found.Insert(version.WithKind(resource.Kind))
			}
		}
	}
	return found
}
