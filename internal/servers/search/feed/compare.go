package feed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// expectedObject is an object of the cache during a comparison.
type expectedObject struct {
	object *objectcache.Object
	// isStored is true if the sink has the object in this version.
	isStored bool
}

// compare makes the stored objects of a source equal to the cache. It needs memory for the IDs of
// the source, but not for the differences. Unless trustVersions is true, it stores all objects again,
// because a stored object may have the resourceVersion of another content.
func (f *Feed) compare(ctx context.Context, objects *objectcache.ClusterObjects, trustVersions bool) error {
	source := *objects.Source()
	if !f.sink.Wants(source) {
		return nil // Wants changed since the caller checked
	}
	expected := make(map[types.UID]expectedObject, objects.Len())
	for object := range objects.All("") {
		expected[IDOf(object).UID] = expectedObject{object: object}
	}
	b := batch{feed: f}
	err := f.sink.Stored(ctx, source, func(id ID, resourceVersion string) error {
		e, exists := expected[id.UID]
		if !exists {
			return b.add(ctx, Change{ID: id, Source: source})
		}
		expected[id.UID] = expectedObject{object: e.object, isStored: trustVersions && e.object.ResourceVersion() == resourceVersion}
		return nil
	})
	if err != nil {
		return fmt.Errorf("comparing the %s of cluster %q with %s: %w", source.Kind.Kind, source.Cluster, f.sink.Name(), err)
	}
	for object := range objects.All("") {
		id := IDOf(object)
		// A hostile member can report several objects with one UID: the last one is stored.
		if e := expected[id.UID]; e.object != object || e.isStored {
			continue
		}
		if err := b.add(ctx, Change{ID: id, Source: source, Object: object}); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// batch collects changes for one call of Apply.
type batch struct {
	feed    *Feed
	changes []Change
	bytes   int64
	// positions, if not nil, has the position of the change of each object, so that only the last
	// change of an object is applied.
	positions map[ID]int
}

// add adds a change, and applies the batch if it is full.
func (b *batch) add(ctx context.Context, change Change) error {
	b.put(change)
	if !b.isFull() {
		return nil
	}
	err := b.flush(ctx)
	b.reset()
	return err
}

// addEvent adds the changes of an event.
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
	if b.positions != nil {
		b.positions[change.ID] = len(b.changes)
	}
	b.changes = append(b.changes, change)
}

func (b *batch) isFull() bool {
	return len(b.changes) >= b.feed.limits.BatchObjects || b.bytes >= b.feed.limits.BatchBytes
}

// flush applies the changes of the batch whose source the sink wants.
func (b *batch) flush(ctx context.Context) error {
	changes := b.changes
	if b.positions != nil {
		changes = nil
		for _, change := range b.changes {
			if b.feed.sink.Wants(change.Source) {
				changes = append(changes, change)
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return b.feed.sink.Apply(ctx, changes)
}

func (b *batch) reset() {
	// The sink can keep the slice of an Apply that timed out, so it is not used again.
	b.changes, b.bytes = nil, 0
	clear(b.positions)
}
