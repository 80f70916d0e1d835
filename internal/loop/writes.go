package loop

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxCacheLag is the longest time that a cache is expected to need to show a write. After that time
// IsStale, IsOwn and Latest drop the write, because the write may be lost, for example by the
// restore of a backup. AreVisible does not use maxCacheLag, because it reads from the API server.
const maxCacheLag = time.Minute

// serverCheckDelay is how long Writes.AreVisible waits for a cache before it reads from the API
// server.
const serverCheckDelay = 10 * time.Second

// Writes is the read-your-writes tracker of a controller. It holds the last writes of this process
// until the cache shows them. A pass that reads an older state would repeat a decision, miss a
// difference, or delete an object that the process has just created.
//
// The writes are grouped by owner, which is usually the request of a pass. An owner may have any
// number of written objects. The tracker is not stored, because the caches of a new process are
// newer than all earlier writes.
type Writes[O comparable] struct {
	now func() time.Time

	mu      sync.Mutex
	byOwner map[O]map[objectID]writtenObject
}

// objectID identifies an object among all objects of its owner.
type objectID struct {
	goType reflect.Type
	// kind is set for unstructured objects only.
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

// writtenObject is an object as the API server returned it after a write.
type writtenObject struct {
	uid     types.UID
	version string
	// object is nil if only the version of the object was recorded.
	object client.Object
	at     time.Time
}

// NewWrites returns an empty tracker. now returns the time, and a nil now means time.Now.
func NewWrites[O comparable](now func() time.Time) *Writes[O] {
	if now == nil {
		now = time.Now
	}
	return &Writes[O]{now: now, byOwner: map[O]map[objectID]writtenObject{}}
}

// Record stores the version of an object that the API server returned for a write.
func (w *Writes[O]) Record(owner O, written client.Object) { w.record(owner, written, nil) }

// RecordState records a write like Record, and also stores the object itself for Latest. The object
// must not be modified afterwards.
func (w *Writes[O]) RecordState(owner O, written client.Object) { w.record(owner, written, written) }

func (w *Writes[O]) record(owner O, written, state client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byOwner[owner] == nil {
		w.byOwner[owner] = map[objectID]writtenObject{}
	}
	w.byOwner[owner][idOf(written)] = writtenObject{
		uid: written.GetUID(), version: written.GetResourceVersion(), object: state, at: w.now(),
	}
}

// Len returns the number of owners with tracked writes.
func (w *Writes[O]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byOwner)
}

// Forget drops all writes of an owner. Callers use it for an owner that is deleted.
func (w *Writes[O]) Forget(owner O) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byOwner, owner)
}

// ForgetObject drops the write of one object, because the API server rejected a later write that
// was computed from it.
func (w *Writes[O]) ForgetObject(owner O, object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(owner, idOf(object))
}

// ForgetDeleted drops the write of an object whose deletion the watch delivered. It keeps a write
// with a later version, because that write belongs to another object of the same name.
func (w *Writes[O]) ForgetDeleted(owner O, lastKnown client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if written, ok := w.byOwner[owner][idOf(lastKnown)]; ok && isComparable(lastKnown, written) && !isOlder(lastKnown, written) {
		w.removeLocked(owner, idOf(lastKnown))
	}
}

// IsStale reports whether a cached object is older than the last write of that object. If the
// cached object is not older, the write is dropped, because the cache shows it.
func (w *Writes[O]) IsStale(owner O, cached client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.lookupLocked(owner, idOf(cached))
	if ok && isOlder(cached, written) {
		return true
	}
	w.removeLocked(owner, idOf(cached))
	return false
}

// IsOwn reports whether an observed state is the result of the last write of this process, or older
// than that write. Such a state needs no processing. If the observed state is not older than the
// write, the write is dropped. Another object of the same name is never an own write.
func (w *Writes[O]) IsOwn(owner O, observed client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.lookupLocked(owner, idOf(observed))
	if !ok {
		return false
	}
	if isSameObject(observed, written) && isOlder(observed, written) {
		return true
	}
	w.removeLocked(owner, idOf(observed))
	return isSameObject(observed, written) && observed.GetResourceVersion() == written.version
}

// Latest returns a cached object, or its last write stored by RecordState if that write is newer.
// Another object of the same name in the cache is always newer than the write. The result must not
// be modified. The write stays tracked until IsStale or IsOwn finds that the cache shows it,
// because the event that the write caused may still arrive.
func Latest[O comparable, T client.Object](w *Writes[O], owner O, cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.lookupLocked(owner, idOf(cached))
	if !ok {
		return cached
	}
	if state, ok := written.object.(T); ok && isSameObject(cached, written) && isOlder(cached, written) {
		return state
	}
	return cached
}

// AreVisible reports whether the cache shows all writes of an owner, or newer states, and drops the
// writes that the cache shows. If the cache does not show a write within serverCheckDelay,
// AreVisible reads from the API server, and drops the write if the API server has no newer state
// than the cache.
func (w *Writes[O]) AreVisible(ctx context.Context, owner O, cache, server client.Reader) (bool, error) {
	w.mu.Lock()
	pending := make(map[objectID]writtenObject, len(w.byOwner[owner]))
	for id, written := range w.byOwner[owner] {
		pending[id] = written
	}
	w.mu.Unlock()
	for id, written := range pending {
		visible, err := w.isVisible(ctx, id, written, cache, server)
		if err != nil {
			return false, fmt.Errorf("reading %s %s: %w", id.title(), id.key, err)
		}
		if !visible {
			return false, nil
		}
		w.mu.Lock()
		if w.byOwner[owner][id] == written {
			w.removeLocked(owner, id)
		}
		w.mu.Unlock()
	}
	return true, nil
}

func (w *Writes[O]) isVisible(ctx context.Context, id objectID, written writtenObject, cache, server client.Reader) (bool, error) {
	cached := id.newObject()
	err := cache.Get(ctx, id.key, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	isCached := err == nil
	if isCached && !isOlder(cached, written) {
		return true, nil
	}
	if w.now().Sub(written.at) < serverCheckDelay {
		return false, nil
	}
	stored := id.newObject()
	err = server.Get(ctx, id.key, stored)
	switch {
	case apierrors.IsNotFound(err):
		// The write counts as visible, because the object may have been created and deleted while
		// the watch was interrupted.
		return true, nil
	case err != nil:
		return false, err
	}
	return isCached && !isOlder(cached, writtenObject{uid: stored.GetUID(), version: stored.GetResourceVersion()}), nil
}

// lookupLocked returns a tracked write unless the write is older than maxCacheLag. The caller holds
// w.mu.
func (w *Writes[O]) lookupLocked(owner O, id objectID) (writtenObject, bool) {
	written, ok := w.byOwner[owner][id]
	if ok && w.now().Sub(written.at) >= maxCacheLag {
		w.removeLocked(owner, id)
		return writtenObject{}, false
	}
	return written, ok
}

// removeLocked removes one write. The caller holds w.mu.
func (w *Writes[O]) removeLocked(owner O, id objectID) {
	delete(w.byOwner[owner], id)
	if len(w.byOwner[owner]) == 0 {
		delete(w.byOwner, owner)
	}
}

func idOf(object client.Object) objectID {
	id := objectID{goType: reflect.TypeOf(object), key: client.ObjectKeyFromObject(object)}
	if _, ok := object.(interface{ UnstructuredContent() map[string]any }); ok {
		id.kind = object.GetObjectKind().GroupVersionKind()
	}
	return id
}

func (o objectID) newObject() client.Object {
	object, _ := reflect.New(o.goType.Elem()).Interface().(client.Object)
	if !o.kind.Empty() {
		object.GetObjectKind().SetGroupVersionKind(o.kind)
	}
	return object
}

func (o objectID) title() string {
	if !o.kind.Empty() {
		return o.kind.Kind
	}
	return o.goType.Elem().Name()
}

func isSameObject(observed client.Object, written writtenObject) bool {
	return observed.GetUID() == written.uid
}

func isComparable(observed client.Object, written writtenObject) bool {
	_, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), written.version)
	return err == nil
}

// isOlder reports whether an observed state is older than a write. It returns false if the versions
// cannot be compared.
func isOlder(observed client.Object, written writtenObject) bool {
	if observed.GetResourceVersion() == written.version {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), written.version)
	return err == nil && order < 0
}
