package objectcache

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// treeDegree is the degree of the trees of objects.
const treeDegree = 32

// Kind holds the objects of one kind in all clusters.
type Kind struct {
	kind  schema.GroupVersionKind
	codec *codec
	now   func() time.Time
	// onState is called after a source came, went, or changed its state or namespaces. Changes of
	// objects and bookmarks are too frequent to wake those that wait for a state.
	onState func()
	removed chan struct{}

	maxObjectBytes int64
	budget         *budget

	mu         sync.Mutex
	resource   string
	namespaced bool
	sources    map[string]*sourceObjects
	log        eventLog
	// snapshot is the newest snapshot. It is nil if objects changed since.
	snapshot *Snapshot
}

// sourceObjects holds the objects of one source. Kind.mu guards it.
type sourceObjects struct {
	current ClusterObjects
	// view is an immutable copy of current. It is nil if current changed since.
	view *ClusterObjects
	// maxBytes is the memory of the objects if they share nothing.
	maxBytes int64
	// isKnown is false while the resource and the scope of the source are only guesses.
	isKnown bool
	// floor is the oldest resourceVersion after which the log holds all events of the source. It is
	// empty while the source is Waiting. floorSequence is the batch with which the numbering of the
	// source began.
	floor         string
	floorSequence uint64
	// resetVersion is the last resourceVersion before the numbering restarted. It is empty if the
	// numbering never restarted.
	resetVersion string
}

// GroupVersionKind returns the kind.
func (k *Kind) GroupVersionKind() schema.GroupVersionKind { return k.kind }

// GroupVersionResource returns the resource of the kind. Source.Resource has the resource in one
// cluster.
func (k *Kind) GroupVersionResource() schema.GroupVersionResource {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kind.GroupVersion().WithResource(k.resource)
}

// Namespaced reports whether objects of the kind are in namespaces.
func (k *Kind) Namespaced() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.namespaced
}

// Removed returns a channel that is closed when no registry names the kind anymore.
func (k *Kind) Removed() <-chan struct{} { return k.removed }

// Snapshot returns the objects of all clusters at this moment. It copies no objects.
func (k *Kind) Snapshot() *Snapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lockedSnapshot()
}

func (k *Kind) lockedSnapshot() *Snapshot {
	if k.snapshot != nil {
		return k.snapshot
	}
	snapshot := &Snapshot{clusters: make([]*ClusterObjects, 0, len(k.sources))}
	for _, cluster := range slices.Sorted(maps.Keys(k.sources)) {
		snapshot.clusters = append(snapshot.clusters, k.sources[cluster].lockedView())
	}
	versions := snapshot.versions()
	snapshot.position = Position{sequence: k.log.next(), versions: &versions}
	k.snapshot = snapshot
	return snapshot
}

func (s *sourceObjects) lockedView() *ClusterObjects {
	if s.view == nil {
		view := s.current
		view.objects = s.current.objects.Clone()
		s.view = &view
	}
	return s.view
}

// AddCluster begins to cache the kind for a cluster, in the state Waiting, and returns the writer of
// its objects. If the kind is cached for the cluster already, AddCluster changes only the
// namespaces: the objects stay. A changed Resource or scope begins from the start.
func (k *Kind) AddCluster(source Source, namespaces []string) *Writer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.sources[source.Cluster]; existing != nil {
		if existing.current.source.Source == source {
			if !slices.Equal(existing.current.namespaces, namespaces) || (existing.current.namespaces == nil) != (namespaces == nil) {
				existing.current.namespaces = namespaces
				k.invalidate(existing)
				k.onState()
				k.appendNamespacesChanged(existing)
			}
			return &Writer{kind: k, source: existing}
		}
		k.removeCluster(existing)
	}
	added := &sourceObjects{current: ClusterObjects{
		source: &objectSource{Source: source, codec: k.codec, maxObjectBytes: k.maxObjectBytes}, state: Waiting, since: k.now(),
		namespaces: namespaces, objects: btree.NewG(treeDegree, isLess),
	}}
	k.sources[source.Cluster] = added
	k.invalidate(added)
	k.onState()
	k.append(added, []Event{{Type: ClusterAdded, Cluster: source.Cluster}})
	return &Writer{kind: k, source: added}
}

// RemoveCluster removes the objects of a cluster. Writers of the cluster have no effect anymore.
func (k *Kind) RemoveCluster(cluster string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.sources[cluster]; existing != nil {
		k.removeCluster(existing)
	}
}

func (k *Kind) removeCluster(removed *sourceObjects) {
	cluster := removed.current.source.Cluster
	events := make([]Event, 0, removed.current.objects.Len()+1)
	removed.current.objects.Ascend(func(object *Object) bool {
		events = append(events, Event{Type: Deleted, Cluster: cluster, ResourceVersion: removed.current.version, Old: object})
		return true
	})
	delete(k.sources, cluster)
	k.budget.add(cluster, -removed.maxBytes)
	k.invalidate(removed)
	k.onState()
	k.append(removed, append(events, Event{Type: ClusterRemoved, Cluster: cluster, ResourceVersion: removed.current.version}))
}

// invalidate discards the views of a changed source.
func (k *Kind) invalidate(changed *sourceObjects) {
	changed.view, k.snapshot = nil, nil
}

// append adds events of a source to the log.
func (k *Kind) append(source *sourceObjects, events []Event) {
	k.snapshot = nil
	b := batch{cluster: source.current.source.Cluster, after: source.current.version, events: events}
	k.log.append(b, k.raiseFloor)
}

// appendNamespacesChanged adds an event without objects. The batch has no version, because no event of
// the member is lost with it.
func (k *Kind) appendNamespacesChanged(source *sourceObjects) {
	cluster := source.current.source.Cluster
	event := Event{Type: NamespacesChanged, Cluster: cluster, ResourceVersion: source.current.version}
	k.log.append(batch{cluster: cluster, events: []Event{event}}, k.raiseFloor)
}

// raiseFloor records that the log does not hold a batch anymore.
func (k *Kind) raiseFloor(sequence uint64, dropped *batch) {
	s := k.sources[dropped.cluster]
	if s != nil && sequence >= s.floorSequence && s.floor != "" && IsOlder(s.floor, dropped.after) {
		s.floor = dropped.after
	}
}

// close removes all clusters and ends the followers.
func (k *Kind) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, cluster := range slices.Sorted(maps.Keys(k.sources)) {
		k.removeCluster(k.sources[cluster])
	}
	close(k.removed)
	k.log.wake()
}
