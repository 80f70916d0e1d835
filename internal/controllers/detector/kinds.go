package detector

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
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
	stop context.CancelFunc
	// missing is since when the kind is not served; zero while it is.
	missing time.Time
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

// compare answers which kinds are new and which are gone. Only a complete view can
// show that a kind is missing; an empty one is never complete, for there is no
// server without kinds. What is missing is gone at once when its definition was
// deleted, or when it is served in another version, whose watch shows the same
// objects; else once it has been missing for as long as patience, for a server
// that has just started may not know all that it serves.
func (k *kinds) compare(served sets.Set[schema.GroupVersionKind], complete bool, now time.Time, patience time.Duration) (added, gone []schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind := range served {
		entry := k.watched[kind]
		if entry == nil {
			added = append(added, kind)
			continue
		}
		entry.missing = time.Time{}
	}
	if !complete || len(served) == 0 {
		return sorted(added), nil
	}
	still := sets.New[schema.GroupKind]()
	for kind := range served {
		still.Insert(kind.GroupKind())
	}
	for kind, entry := range k.watched {
		switch {
		case served.Has(kind):
		case k.undefined.Has(kind.GroupKind()), still.Has(kind.GroupKind()):
			gone = append(gone, kind)
		case entry.missing.IsZero():
			entry.missing = now
		case now.Sub(entry.missing) >= patience:
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
func watchable(skipped policy.SkippedAPIs, served []*metav1.APIResourceList) sets.Set[schema.GroupVersionKind] {
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
