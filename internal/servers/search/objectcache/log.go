package objectcache

import "errors"

// EventType is the type of an Event.
type EventType string

// The types of events.
const (
	// Added, Modified and Deleted are changes of one object.
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
	// ClusterAdded means that the kind is cached for one more cluster. Its objects follow as Added
	// events as soon as they are listed.
	ClusterAdded EventType = "ClusterAdded"
	// ClusterRemoved means that the kind is not cached anymore for a cluster. Deleted events for
	// its objects precede.
	ClusterRemoved EventType = "ClusterRemoved"
	// Reset means that the resourceVersions of a cluster restarted at a lower number, for example
	// because etcd was restored. The differences of its objects follow.
	Reset EventType = "Reset"
	// NamespacesChanged means that ClusterObjects.Namespaces of a cluster changed. The objects stay.
	NamespacesChanged EventType = "NamespacesChanged"
)

// Event is one change of the objects of a kind.
type Event struct {
	Type    EventType
	Cluster string
	// ResourceVersion is the resourceVersion of the change in the member. For Deleted, it is the
	// version of the deletion, or an upper limit of it if the deletion was found by a list. The
	// versions of a cluster do not decrease, except after Reset.
	ResourceVersion string
	// Old is set for Modified and Deleted, New for Added and Modified.
	Old, New *Object
}

// ErrExpired means that the log does not hold the requested events anymore, or that the kind is not
// cached anymore. The follower takes a new snapshot.
var ErrExpired = errors.New("the log of the cache does not reach back so far: take a new snapshot")

// Position is a place in the log of a kind. Only Snapshot.Position creates positions.
type Position struct {
	sequence uint64
	versions *map[string]string
}

// batch holds the events of one change of a cluster. Its events are never modified.
type batch struct {
	cluster string
	// after is the resourceVersion of the cluster after the events.
	after  string
	events []Event
	bytes  int64
}

// eventLog holds the newest batches of one kind over all clusters. Kind.mu guards it.
type eventLog struct {
	batches []batch
	// head is the index of the oldest batch in batches, first is its sequence number.
	head  int
	first uint64

	events, maxEvents int
	bytes, maxBytes   int64
	// appended is closed at the next append. It is nil while no follower waits.
	appended chan struct{}
}

// next returns the sequence number of the next batch.
func (l *eventLog) next() uint64 { return l.first + uint64(len(l.batches)-l.head) }

// at returns the batch with a sequence number that the log holds.
func (l *eventLog) at(sequence uint64) *batch { return &l.batches[l.head+int(sequence-l.first)] }

// append adds a batch, wakes the followers, and drops the oldest batches beyond the limits. It keeps the
// newest batch, unless its bytes alone exceed the limit: then all followers expire. onDrop is called for each dropped batch.
func (l *eventLog) append(b batch, onDrop func(sequence uint64, b *batch)) {
	for i := range b.events {
		// A new object is in the cache anyway. Only replaced objects need memory for the log.
		if old := b.events[i].Old; old != nil {
			b.bytes += old.Bytes()
		}
	}
	l.batches = append(l.batches, b)
	l.events, l.bytes = l.events+len(b.events), l.bytes+b.bytes
	for l.bytes > l.maxBytes || l.events > l.maxEvents && len(l.batches)-l.head > 1 {
		l.dropOldest(onDrop)
	}
	l.wake()
}

func (l *eventLog) dropOldest(onDrop func(sequence uint64, b *batch)) {
	oldest := &l.batches[l.head]
	onDrop(l.first, oldest)
	l.events, l.bytes = l.events-len(oldest.events), l.bytes-oldest.bytes
	*oldest = batch{}
	l.head++
	l.first++
	if l.head > len(l.batches)/2 {
		count := copy(l.batches, l.batches[l.head:])
		clear(l.batches[count:])
		l.batches, l.head = l.batches[:count], 0
	}
}

// wake wakes all followers that wait.
func (l *eventLog) wake() {
	if l.appended != nil {
		close(l.appended)
		l.appended = nil
	}
}

// wait returns a channel that is closed at the next append.
func (l *eventLog) wait() <-chan struct{} {
	if l.appended == nil {
		l.appended = make(chan struct{})
	}
	return l.appended
}
