package execution

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// objectKey identifies one manifest of one Work.
type objectKey struct {
	work   types.NamespacedName
	kind   schema.GroupVersionKind
	object types.NamespacedName
}

func keyOf(karmadaWork *workv1alpha1.Work, manifest *unstructured.Unstructured) objectKey {
	return objectKey{
		work:   workKey(karmadaWork),
		kind:   manifest.GroupVersionKind(),
		object: types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
	}
}

// appliedState is the state that a member returned when a manifest was last applied.
type appliedState struct {
	manifestHash, observedHash uint64
	// resourceVersion is the resourceVersion of the observed object.
	resourceVersion string
	drift           work.RepairBackoff
	// conflictMessage describes the drift conflict.
	conflictMessage string
}

// appliedTracker records for every manifest which object the member stored for it. A member may
// default or change fields that the manifest leaves out, so its object never equals the
// manifest. Without this record every pass would write the object again.
//
// The record may be lost: then an object is compared with its manifest once more.
type appliedTracker struct {
	mu      sync.Mutex
	applied map[types.NamespacedName]map[objectKey]appliedState
	// releasedWorks holds Works whose finalizer was removed and that the cache may still show.
	releasedWorks map[types.NamespacedName]releasedWork
	// reportedDispatching holds the status of the Dispatching condition of a Work that was last
	// recorded as an event.
	reportedDispatching map[types.NamespacedName]string
	// lastWrites holds the time of the last change of an object of a Work in the member.
	lastWrites map[types.NamespacedName]time.Time
}

func newAppliedTracker() *appliedTracker {
	return &appliedTracker{
		applied:       map[types.NamespacedName]map[objectKey]appliedState{},
		releasedWorks: map[types.NamespacedName]releasedWork{}, reportedDispatching: map[types.NamespacedName]string{},
		lastWrites: map[types.NamespacedName]time.Time{},
	}
}

// recordApplied stores that the manifest was applied and which object the member holds now.
func (t *appliedTracker) recordApplied(key objectKey, manifest, observed *unstructured.Unstructured) {
	state := appliedState{manifestHash: work.PrunedHash(manifest), observedHash: work.PrunedHash(observed), resourceVersion: observed.GetResourceVersion()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.applied[key.work] == nil {
		t.applied[key.work] = map[objectKey]appliedState{}
	}
	before := t.applied[key.work][key]
	state.drift, state.conflictMessage = before.drift, before.conflictMessage
	t.applied[key.work][key] = state
}

// checkRepair reports whether a write would repair drift: the same manifest was applied before,
// and the member object differs from it now. wait is the backoff that the repair has to wait
// for because earlier repairs were reverted.
func (t *appliedTracker) checkRepair(key objectKey, manifest *unstructured.Unstructured, now time.Time) (isRepair bool, wait time.Duration) {
	t.mu.Lock()
	state, ok := t.applied[key.work][key]
	t.mu.Unlock()
	if !ok || state.manifestHash != work.PrunedHash(manifest) {
		return false, 0
	}
	return true, state.drift.RemainingDelay(now)
}

// wasApplied reports whether this exact manifest was applied, even if the object changed
// afterwards.
func (t *appliedTracker) wasApplied(key objectKey, manifest *unstructured.Unstructured) bool {
	t.mu.Lock()
	state, ok := t.applied[key.work][key]
	t.mu.Unlock()
	return ok && state.manifestHash == work.PrunedHash(manifest)
}

// hasRecentRepairs reports whether the object was repaired recently, so that another repair may
// be a drift conflict.
func (t *appliedTracker) hasRecentRepairs(key objectKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applied[key.work][key].drift.CloseRepairs > 0
}

// recordRepair stores a repair and the description of what made it necessary.
func (t *appliedTracker) recordRepair(key objectKey, now time.Time, conflictMessage string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, ok := t.applied[key.work][key]
	if !ok {
		return
	}
	state.drift = state.drift.WithRepair(now)
	if conflictMessage != "" {
		state.conflictMessage = conflictMessage
	}
	t.applied[key.work][key] = state
}

// driftConflict returns the description of the drift conflict of an object and the delay until
// the next pass; 0 means that there is no conflict.
func (t *appliedTracker) driftConflict(key objectKey, now time.Time) (message string, retryAfter time.Duration) {
	t.mu.Lock()
	state := t.applied[key.work][key]
	t.mu.Unlock()
	inConflict, remaining := state.drift.IsDriftConflict(now)
	if !inConflict {
		return "", 0
	}
	return state.conflictMessage, shorterDelay(state.drift.RemainingDelay(now), remaining)
}

// hasOtherVersion reports whether an object was applied and exists in another version now.
func (t *appliedTracker) hasOtherVersion(key objectKey, version string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, ok := t.applied[key.work][key]
	return ok && state.resourceVersion != version
}

// isUnchanged reports whether this exact manifest was applied and the member object did not
// change since.
func (t *appliedTracker) isUnchanged(key objectKey, manifest, observed *unstructured.Unstructured) bool {
	t.mu.Lock()
	state, ok := t.applied[key.work][key]
	t.mu.Unlock()
	return ok && state.manifestHash == work.PrunedHash(manifest) && state.observedHash == work.PrunedHash(observed)
}

// releasedWork is a Work whose finalizer was removed.
type releasedWork struct {
	uid        types.UID
	releasedAt time.Time
}

// releasedWorkTTL is the time within which a watch shows the deletion of a released Work. A Work
// that exists after that time was created again, as by the restore of a backup.
const releasedWorkTTL = 30 * time.Second

// recordRelease records that the finalizer of a Work was removed.
func (t *appliedTracker) recordRelease(karmadaWork *workv1alpha1.Work, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.applied, workKey(karmadaWork))
	t.releasedWorks[workKey(karmadaWork)] = releasedWork{uid: karmadaWork.UID, releasedAt: now}
}

// isReleased reports whether the finalizer of the Work with this UID was removed within the
// last seconds.
func (t *appliedTracker) isReleased(karmadaWork *workv1alpha1.Work, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	released, ok := t.releasedWorks[workKey(karmadaWork)]
	return ok && released.uid == karmadaWork.UID && now.Sub(released.releasedAt) < releasedWorkTTL
}

func workKey(karmadaWork *workv1alpha1.Work) types.NamespacedName {
	return types.NamespacedName{Namespace: karmadaWork.Namespace, Name: karmadaWork.Name}
}

// deleteWork deletes the records of a Work that does not exist any more.
func (t *appliedTracker) deleteWork(karmadaWork types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.applied, karmadaWork)
	delete(t.releasedWorks, karmadaWork)
	delete(t.reportedDispatching, karmadaWork)
	delete(t.lastWrites, karmadaWork)
}

// statusDelay is the time within which a new status is expected after a write.
const statusDelay = 10 * time.Second

// recordWrite records whether a pass wrote to the member, and reports whether one did recently.
// The watch of the member shows our own write, which causes a pass that finds nothing to do.
func (t *appliedTracker) recordWrite(karmadaWork types.NamespacedName, wrote bool, now time.Time) (isRecent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wrote {
		t.lastWrites[karmadaWork] = now
	}
	at, ok := t.lastWrites[karmadaWork]
	if ok && now.Sub(at) >= statusDelay {
		delete(t.lastWrites, karmadaWork)
		return false
	}
	return ok
}

// recordDispatching records a status of the Dispatching condition and reports whether it is
// new. The condition itself is written a moment later.
func (t *appliedTracker) recordDispatching(karmadaWork *workv1alpha1.Work, status string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isReported := t.reportedDispatching[workKey(karmadaWork)] == status
	t.reportedDispatching[workKey(karmadaWork)] = status
	return !isReported
}
