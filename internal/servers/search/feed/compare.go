package feed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// cachedObject is an object in the cache during a comparison.
type cachedObject struct {
	*objectcache.Object
	// isStored is true if the sink has the object in this version.
	isStored bool
}

// compare makes a source's stored objects equal to the cache. It needs memory for the source's object
// IDs, but not for the differences. If trustVersions is false, it stores all objects again, because a
// stored object may have the same resourceVersion but different content.
func (f *Feed) compare(ctx context.Context, objects *objectcache.ClusterObjects, trustVersions bool) error {
	source := *objects.Source()
	if !f.sink.Wants(source) {
		return nil // Wants has changed since the caller checked it
	}
	cached := make(map[types.UID]cachedObject, objects.Len())
	for object := range objects.All("") {
		cached[IDOf(object).UID] = cachedObject{Object: object}
	}
	b := newBatch(f)
	err := f.sink.Stored(ctx, source, func(id ID, resourceVersion string) error {
		object, exists := cached[id.UID]
		if !exists {
			return b.add(ctx, Change{ID: id, Source: source})
		}
		object.isStored = trustVersions && object.ResourceVersion() == resourceVersion
		cached[id.UID] = object
		return nil
	})
	if err != nil {
		return fmt.Errorf("comparing the %s of cluster %q with %s: %w", source.Kind.Kind, source.Cluster, f.sink.Name(), err)
	}
	for object := range objects.All("") {
		id := IDOf(object)
		// A malicious member can report several objects with the same UID. Only the last one is stored.
		if c := cached[id.UID]; c.Object != object || c.isStored {
			continue
		}
		if err := b.add(ctx, Change{ID: id, Source: source, Object: object}); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// batch collects the changes for one call of Apply.
type batch struct {
	feed    *Feed
	changes []Change
	bytes   int64
	// positions maps each object to the position of its change. Only an object's last change is
	// applied, because a sink may apply the changes in any order.
	positions map[ID]int
}

func newBatch(f *Feed) *batch { return &batch{feed: f, positions: map[ID]int{}} }

// add adds a change. If the batch is then full, it applies the batch.
func (b *batch) add(ctx context.Context, change Change) error {
	b.put(change)
	if !b.isFull() {
		return nil
	}
	return b.flush(ctx)
}

// addEvent adds the changes that an event describes.
func (b *batch) addEvent(event objectcache.Event) {
	if event.Old != nil && (event.New == nil || IDOf(event.New) != IDOf(event.Old)) {
		b.put(Change{ID: IDOf(event.Old), Source: *event.Old.Source()})
	}
	if event.New != nil {
		b.put(Change{ID: IDOf(event.New), Source: *event.New.Source(), Object: event.New})
	}
}

func (b *batch) put(change Change) {
	if change.Object != nil {
		b.bytes += change.Object.Bytes()
	}
	if position, exists := b.positions[change.ID]; exists {
		b.changes[position] = change
		return
	}
	b.positions[change.ID] = len(b.changes)
	b.changes = append(b.changes, change)
}

func (b *batch) isFull() bool {
	return len(b.changes) >= b.feed.limits.BatchObjects || b.bytes >= b.feed.limits.BatchBytes
}

// flush applies the changes and empties the batch.
func (b *batch) flush(ctx context.Context) error {
	changes := b.changes
	// Do not reuse the slice, because the sink may still use it after an Apply that timed out.
	b.changes, b.bytes = nil, 0
	clear(b.positions)
	if len(changes) == 0 {
		return nil
	}
	return b.feed.sink.Apply(ctx, changes)
}
