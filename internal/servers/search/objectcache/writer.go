package objectcache

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/conditions"
)

// Writer changes the objects of one source. The watch of the source and tests use it. Its methods
// have no effect after the source was removed.
type Writer struct {
	kind   *Kind
	source *sourceObjects
}

// Source returns the source that the writer changes.
func (w *Writer) Source() Source { return w.source.current.source.Source }

// Encode compresses an object of the source for Set and Replace. It may modify the object. It returns
// an error if the object cannot be encoded as JSON.
func (w *Writer) Encode(object *unstructured.Unstructured) (*Object, error) {
	return newObject(w.source.current.source, object)
}

// reuse returns the cached object if it has the UID and the resourceVersion of an object that a list
// returned, and nil otherwise. It is only valid while the resourceVersions of the cluster do not
// restart.
func (w *Writer) reuse(object *unstructured.Unstructured) *Object {
	w.kind.mu.Lock()
	defer w.kind.mu.Unlock()
	cached, _ := w.source.current.objects.Get(newKey(object.GetNamespace(), object.GetName()))
	if cached == nil || cached.ResourceVersion() != object.GetResourceVersion() || cached.UID() != object.GetUID() ||
		object.GetResourceVersion() == "" {
		return nil
	}
	return cached
}

// ResourceVersion returns the resourceVersion of the newest list, event or bookmark.
func (w *Writer) ResourceVersion() string {
	w.kind.mu.Lock()
	defer w.kind.mu.Unlock()
	return w.source.current.version
}

// held returns the number of objects, and their memory if they share nothing.
func (w *Writer) held() (objects int, bytes int64) {
	w.kind.mu.Lock()
	defer w.kind.mu.Unlock()
	return w.source.current.objects.Len(), w.source.maxBytes
}

// lock locks the kind. It returns false, without the lock, if the source was removed.
func (w *Writer) lock() bool {
	w.kind.mu.Lock()
	if w.kind.sources[w.source.current.source.Cluster] == w.source {
		return true
	}
	w.kind.mu.Unlock()
	return false
}

// SetState changes the state of the source. A source that was never listed stays Waiting, and only its
// reason changes. The time of the state changes only if the state changes.
func (w *Writer) SetState(state State, reason string) {
	if !w.lock() {
		return
	}
	defer w.kind.mu.Unlock()
	if w.source.current.version == "" {
		state = Waiting
	}
	w.setState(state, reason)
}

func (w *Writer) setState(state State, reason string) {
	current := &w.source.current
	if current.state == state && current.reason == reason {
		return
	}
	if current.state != state {
		current.since = w.kind.now()
	}
	current.state, current.reason = state, reason
	w.kind.invalidate(w.source)
	w.kind.onState()
}

// Bookmark records that the objects are those of a resourceVersion. It ignores older versions.
func (w *Writer) Bookmark(version string) {
	if !w.lock() {
		return
	}
	defer w.kind.mu.Unlock()
	if w.advance(version) {
		w.kind.invalidate(w.source)
	}
}

// advance raises the resourceVersion of the source, and reports whether it changed.
func (w *Writer) advance(version string) bool {
	current := &w.source.current
	if version == "" || current.version == "" || version == current.version || IsOlder(version, current.version) {
		return false
	}
	current.version = version
	return true
}

// Set adds or replaces an object.
func (w *Writer) Set(object *Object) {
	if !w.lock() {
		return
	}
	defer w.kind.mu.Unlock()
	old, _ := w.source.current.objects.Get(object)
	if old != nil && old.hasSameVersion(object) {
		return
	}
	events := w.store(nil, old, object)
	w.advance(object.ResourceVersion())
	w.kind.invalidate(w.source)
	w.kind.append(w.source, events)
}

func (w *Writer) countMaxBytes(bytes int64) {
	w.source.maxBytes += bytes
	w.kind.budget.add(w.source.current.source.Cluster, bytes)
}

// limitGrowth returns an error if storing an object would exceed a limit of all kinds.
func (w *Writer) limitGrowth(object *Object) error {
	w.kind.mu.Lock()
	defer w.kind.mu.Unlock()
	more := object.maxBytes()
	if old, _ := w.source.current.objects.Get(object); old != nil {
		more -= old.maxBytes()
	}
	return w.kind.budget.check(w.source.current.source.Cluster, more)
}

// store stores an object and appends the events of the change.
func (w *Writer) store(events []Event, old, object *Object) []Event {
	current := &w.source.current
	cluster, version := current.source.Cluster, object.ResourceVersion()
	current.objects.ReplaceOrInsert(object)
	current.bytes += object.Bytes()
	w.countMaxBytes(object.maxBytes())
	if old == nil {
		return append(events, Event{Type: Added, Cluster: cluster, ResourceVersion: version, New: object})
	}
	current.bytes -= old.Bytes()
	w.countMaxBytes(-old.maxBytes())
	if old.hasSameUID(object) {
		return append(events, Event{Type: Modified, Cluster: cluster, ResourceVersion: version, Old: old, New: object})
	}
	// The deletion of the old object came before the creation of the new one. A follower that
	// resumes at the version of the deletion must still get the creation.
	return append(events,
		Event{Type: Deleted, Cluster: cluster, ResourceVersion: versionBefore(version), Old: old},
		Event{Type: Added, Cluster: cluster, ResourceVersion: version, New: object})
}

// Remove removes an object. version is the resourceVersion of the deletion.
func (w *Writer) Remove(namespace, name, version string) {
	if !w.lock() {
		return
	}
	defer w.kind.mu.Unlock()
	events := w.remove(nil, newKey(namespace, name), version)
	if w.advance(version) || len(events) > 0 {
		w.kind.invalidate(w.source)
	}
	if len(events) > 0 {
		w.kind.append(w.source, events)
	}
}

func (w *Writer) remove(events []Event, key *Object, version string) []Event {
	current := &w.source.current
	old, found := current.objects.Delete(key)
	if !found {
		return events
	}
	current.bytes -= old.Bytes()
	w.countMaxBytes(-old.maxBytes())
	return append(events, Event{Type: Deleted, Cluster: current.source.Cluster, ResourceVersion: version, Old: old})
}

// Replace stores a complete list of the objects with its resourceVersion. Only differences become
// events. The source becomes Current. A version below the last one means that the numbering
// of the cluster restarted.
func (w *Writer) Replace(objects []*Object, version string) { w.replace(objects, version, Current, "") }

// replace stores a complete list as Replace does, with a state.
func (w *Writer) replace(objects []*Object, version string, state State, reason string) {
	if !w.lock() {
		return
	}
	defer w.kind.mu.Unlock()
	current := &w.source.current
	var events []Event
	reset := current.version != "" && IsOlder(version, current.version)
	if reset {
		events = append(events, Event{Type: Reset, Cluster: current.source.Cluster, ResourceVersion: version})
		w.source.resetVersion = current.version
	}
	if reset || current.version == "" {
		w.source.floor, w.source.floorSequence = version, w.kind.log.next()
	}
	events = w.storeList(events, objects, version, reset)
	current.version = version
	w.setState(state, conditions.Truncate(conditions.ToPrintable(reason), maxReasonBytes))
	w.kind.invalidate(w.source)
	if len(events) > 0 {
		w.kind.append(w.source, events)
	}
}

// storeList stores a list and appends the events of the differences, in the order of their versions.
// Deletions have the version of the list, because their own version is unknown.
func (w *Writer) storeList(events []Event, objects []*Object, version string, reset bool) []Event {
	current := &w.source.current
	listed := slices.Clone(objects)
	slices.SortFunc(listed, compareByVersion)
	present := make(map[*Object]struct{}, len(listed))
	for _, object := range listed {
		old, _ := current.objects.Get(object)
		if old != nil && (old == object || old.hasSameVersion(object) && (!reset || old.hasSameContent(object))) {
			present[old] = struct{}{}
			continue
		}
		events = w.store(events, old, object)
		present[object] = struct{}{}
	}
	var gone []*Object
	current.objects.Ascend(func(object *Object) bool {
		if _, found := present[object]; !found {
			gone = append(gone, object)
		}
		return true
	})
	for _, object := range gone {
		events = w.remove(events, object, version)
	}
	return events
}
