package objectcache

import (
	"cmp"
	"context"
	"fmt"
	"maps"
)

// maxBatchEvents is the number of events above which Next returns, although more events are there.
const maxBatchEvents = 512

// Cursor reads the events of a kind one after another. Only one goroutine may use it. It needs no
// end, and holds no queue.
type Cursor struct {
	kind *Kind
	next uint64
	// versions has the resourceVersion of each cluster after the events that were returned.
	versions map[string]string
	// begins restricts the events of clusters with a given resourceVersion until the first event that
	// the follower does not know. The events of the other clusters begin with the batch created.
	begins  map[string]begin
	created uint64
	// initial are the initial states that were not returned yet. lastInitial is the last object that
	// was returned of the first of them.
	initial     []*ClusterObjects
	lastInitial *Object
}

// begin is the place at which a follower begins to read the events of a cluster.
type begin struct {
	// version is the last resourceVersion that the follower knows. It is empty if the follower knows
	// the batches before sequence.
	version string
	// sequence is the first batch that the follower may not know. If version is set, it is the
	// batch with which the numbering of the cluster began.
	sequence uint64
}

// Follow returns the events after a snapshot.
func (k *Kind) Follow(after Position) *Cursor {
	versions := map[string]string{}
	if after.versions != nil {
		versions = maps.Clone(*after.versions)
	}
	return &Cursor{kind: k, next: after.sequence, versions: versions}
}

// FollowFrom returns the events after the given resourceVersion of each cluster. A cluster without an
// entry begins with its initial state as Added events. A version that is newer than the cache is
// valid: the events up to it are skipped.
//
// It returns ErrExpired if the log does not hold all events after a version, if the numbering of
// a cluster restarted, or if a cluster is not cached or not listed (anymore).
func (k *Kind) FollowFrom(versions map[string]string) (*Cursor, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cursor := &Cursor{
		kind: k, next: k.log.first, created: k.log.next(), versions: map[string]string{}, begins: map[string]begin{},
	}
	for cluster, version := range versions {
		if err := k.requireKnownVersion(cluster, version); err != nil {
			return nil, err
		}
		cursor.versions[cluster] = version
		cursor.begins[cluster] = begin{version: version, sequence: k.sources[cluster].floorSequence}
	}
	for _, c := range k.lockedSnapshot().clusters {
		if _, given := versions[c.source.Cluster]; !given && c.version != "" {
			cursor.initial = append(cursor.initial, c)
		}
	}
	cursor.skipKnownBatches()
	return cursor, nil
}

// skipKnownBatches moves the cursor to the first event that the follower does not know. Otherwise the
// cursor of a full log would expire with the next event.
func (c *Cursor) skipKnownBatches() {
	for log := &c.kind.log; c.next < log.next(); c.next++ {
		b := log.at(c.next)
		if c.knownEvents(b) < len(b.events) {
			return
		}
	}
}

// requireKnownVersion returns ErrExpired if the events of a cluster after a version are not known.
func (k *Kind) requireKnownVersion(cluster, version string) error {
	s := k.sources[cluster]
	if s == nil {
		return fmt.Errorf("cluster %q is not cached: %w", cluster, ErrExpired)
	}
	current := s.current.version
	if current == "" {
		return fmt.Errorf("the objects of cluster %q are not listed yet: %w", cluster, ErrExpired)
	}
	if order, ok := compareVersions(version, s.floor); !ok || order < 0 {
		return fmt.Errorf("resourceVersion %q of cluster %q: %w", version, cluster, ErrExpired)
	}
	// While the new numbering has not reached the old one, a version beyond the cache can only be one
	// of the old numbering. Later, a version below the old numbering may be of either one.
	if reset := s.resetVersion; reset != "" && !IsOlder(reset, version) && (IsOlder(current, version) || IsOlder(reset, current)) {
		return fmt.Errorf("the resourceVersions of cluster %q restarted: %w", cluster, ErrExpired)
	}
	return nil
}

// Next waits for events and returns at least one. It returns the error of ctx when ctx ends, and
// ErrExpired if the log does not hold the next event anymore. The caller must not modify the result.
func (c *Cursor) Next(ctx context.Context) ([]Event, error) {
	for {
		if events := c.nextInitial(); len(events) > 0 {
			return events, nil
		}
		events, appended, err := c.read()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-appended:
		case <-c.kind.removed:
			// The events of the removal are in the log. Only a follower that read all of them ends.
			if events, _, err := c.read(); err != nil || len(events) > 0 {
				return events, err
			}
			return nil, fmt.Errorf("no registry names the kind %s any more: %w", c.kind.kind.Kind, ErrExpired)
		}
	}
}

// read returns the next events, or a channel that is closed when there are some.
func (c *Cursor) read() (events []Event, appended <-chan struct{}, err error) {
	c.kind.mu.Lock()
	defer c.kind.mu.Unlock()
	log := &c.kind.log
	if c.next < log.first {
		return nil, nil, ErrExpired
	}
	for c.next < log.next() && len(events) < maxBatchEvents {
		b := log.at(c.next)
		known, err := c.skipKnown(b)
		if err != nil {
			return nil, nil, err
		}
		c.next++
		if events == nil {
			// Most reads return one batch, which needs no copy. The capacity makes append copy.
			events = known[:len(known):len(known)]
			continue
		}
		events = append(events, known...)
	}
	return events, log.wait(), nil
}

// skipKnown returns the events of the next batch that the follower does not know, and updates the
// versions.
func (c *Cursor) skipKnown(b *batch) ([]Event, error) {
	start := c.beginOf(b.cluster)
	if start.version != "" && b.events[0].Type == Reset && c.next > start.sequence {
		return nil, fmt.Errorf("the resourceVersions of cluster %q restarted: %w", b.cluster, ErrExpired)
	}
	unknown := b.events[c.knownEvents(b):]
	if len(unknown) > 0 && b.events[0].Type != NamespacesChanged {
		if start.version != "" {
			c.begins[b.cluster] = begin{}
		}
		c.recordVersion(b)
	}
	return unknown, nil
}

// knownEvents returns the number of events at the begin of the next batch that the follower knows.
func (c *Cursor) knownEvents(b *batch) int {
	if b.events[0].Type != NamespacesChanged {
		return c.beginOf(b.cluster).knownEvents(c.next, b)
	}
	// The version of the follower says nothing about namespaces.
	if c.next < c.created {
		return len(b.events)
	}
	return 0
}

func (c *Cursor) beginOf(cluster string) begin {
	if start, given := c.begins[cluster]; given {
		return start
	}
	return begin{sequence: c.created}
}

// knownEvents returns the number of events at the begin of a batch that the follower knows.
func (s begin) knownEvents(sequence uint64, b *batch) int {
	if sequence < s.sequence {
		return len(b.events)
	}
	if s.version == "" || b.events[len(b.events)-1].Type == ClusterRemoved {
		return 0
	}
	// No event of a batch is newer than the version after the batch.
	if order, ok := compareVersions(b.after, s.version); ok && order <= 0 {
		return len(b.events)
	}
	for i := range b.events {
		if order, ok := compareVersions(b.events[i].ResourceVersion, s.version); !ok || order > 0 {
			return i
		}
	}
	return len(b.events)
}

func (c *Cursor) recordVersion(b *batch) {
	if b.events[len(b.events)-1].Type == ClusterRemoved {
		delete(c.versions, b.cluster)
		return
	}
	if b.after != "" {
		c.versions[b.cluster] = b.after
	}
}

// nextInitial returns the next part of the initial states, or nil after their end.
func (c *Cursor) nextInitial() []Event {
	var events []Event
	for len(c.initial) > 0 && len(events) < maxBatchEvents {
		cluster := c.initial[0]
		last := c.lastInitial
		c.lastInitial = nil
		first := cmp.Or(last, newKey("", ""))
		cluster.objects.AscendGreaterOrEqual(first, func(object *Object) bool {
			if object == last {
				return true
			}
			events = append(events, Event{
				Type: Added, Cluster: cluster.source.Cluster, ResourceVersion: object.ResourceVersion(), New: object,
			})
			if len(events) == maxBatchEvents {
				c.lastInitial = object
			}
			return len(events) < maxBatchEvents
		})
		if c.lastInitial == nil {
			// The array must not keep the objects that were returned.
			c.initial[0] = nil
			c.initial = c.initial[1:]
			c.versions[cluster.source.Cluster] = cluster.version
		}
	}
	if len(c.initial) == 0 {
		c.initial = nil
	}
	return events
}

// Versions returns the latest known resourceVersion of each cluster, as of the events that were
// returned. After all events were returned, it includes the bookmarks of the members.
func (c *Cursor) Versions() map[string]string {
	c.kind.mu.Lock()
	defer c.kind.mu.Unlock()
	versions := maps.Clone(c.versions)
	if c.next != c.kind.log.next() || len(c.initial) > 0 {
		return versions
	}
	for cluster, s := range c.kind.sources {
		if current := s.current.version; current != "" && !IsOlder(current, versions[cluster]) {
			versions[cluster] = current
		}
	}
	return versions
}
