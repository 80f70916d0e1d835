package execution

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

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

// appliedState describes the object that a member returned when a manifest was last applied.
type appliedState struct {
	manifestHash, observedHash uint64
	// resourceVersion is the resourceVersion of the object that the member returned.
	resourceVersion string
	drift           work.RepairBackoff
	// conflictMessage describes the drift conflict.
	conflictMessage string
	// hasOldRules is true if rules of the kind may have changed since the manifest was applied.
	hasOldRules bool
}

// appliedTracker records, for every manifest, the object that the member stored for it. The record
// is needed because a member may set defaults or change fields that the manifest leaves out, so
// that the object never equals the manifest. Without the record every pass would write the object
// again.
//
// If the record is lost, the next pass compares the object with its manifest once more.
type appliedTracker struct {
	mu      sync.Mutex
	applied map[types.NamespacedName]map[objectKey]appliedState
	// reportedDispatching contains, for each Work, the status of the Dispatching condition that was
	// last recorded as an event.
	reportedDispatching map[types.NamespacedName]string
	// lastWrites contains, for each Work, the time at which an object of the Work was last changed
	// in the member.
	lastWrites map[types.NamespacedName]time.Time
	// ruleChanges contains the Works for which rules changed since the start of their last pass.
	ruleChanges sets.Set[types.NamespacedName]
}

func newAppliedTracker() *appliedTracker {
	return &appliedTracker{
		applied:             map[types.NamespacedName]map[objectKey]appliedState{},
		reportedDispatching: map[types.NamespacedName]string{},
		lastWrites:          map[types.NamespacedName]time.Time{}, ruleChanges: sets.New[types.NamespacedName](),
	}
}

// recordApplied records that the manifest was applied, and which object the member has now.
func (a *appliedTracker) recordApplied(key objectKey, manifest, observed *unstructured.Unstructured) {
	state := appliedState{manifestHash: work.PrunedHash(manifest), observedHash: work.PrunedHash(observed),
		resourceVersion: observed.GetResourceVersion()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied[key.work] == nil {
		a.applied[key.work] = map[objectKey]appliedState{}
	}
	before := a.applied[key.work][key]
	state.drift, state.conflictMessage = before.drift, before.conflictMessage
	state.hasOldRules = a.ruleChanges.Has(key.work)
	a.applied[key.work][key] = state
}

// repairDelay reports whether a write would repair drift: the same manifest was applied before with
// the same rules, and the object in the member differs from it now. wait is the backoff before the
// repair if earlier repairs were reverted.
func (a *appliedTracker) repairDelay(key objectKey, manifest *unstructured.Unstructured,
	now time.Time) (isRepair bool, wait time.Duration) {
	a.mu.Lock()
	state, ok := a.applied[key.work][key]
	a.mu.Unlock()
	if !ok || state.hasOldRules || state.manifestHash != work.PrunedHash(manifest) {
		return false, 0
	}
	return true, state.drift.RemainingDelay(now)
}

// wasApplied reports whether exactly this manifest was applied, even if the object changed
// afterwards.
func (a *appliedTracker) wasApplied(key objectKey, manifest *unstructured.Unstructured) bool {
	a.mu.Lock()
	state, ok := a.applied[key.work][key]
	a.mu.Unlock()
	return ok && state.manifestHash == work.PrunedHash(manifest)
}

// hasRecentRepairs reports whether the object was repaired recently, so that another repair may
// mean a drift conflict.
func (a *appliedTracker) hasRecentRepairs(key objectKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied[key.work][key].drift.CloseRepairs > 0
}

// recordRepair records a repair and the description of the change that made it necessary.
func (a *appliedTracker) recordRepair(key objectKey, now time.Time, conflictMessage string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state, ok := a.applied[key.work][key]
	if !ok {
		return
	}
	state.drift = state.drift.WithRepair(now)
	if conflictMessage != "" {
		state.conflictMessage = conflictMessage
	}
	a.applied[key.work][key] = state
}

// driftConflict returns the description of the drift conflict of an object and the delay until the
// next pass. 0 means that there is no conflict.
func (a *appliedTracker) driftConflict(key objectKey, now time.Time) (message string, retryAfter time.Duration) {
	a.mu.Lock()
	state := a.applied[key.work][key]
	a.mu.Unlock()
	inConflict, remaining := state.drift.IsDriftConflict(now)
	if !inConflict {
		return "", 0
	}
	return state.conflictMessage, shorterDelay(state.drift.RemainingDelay(now), remaining)
}

// appliedVersion returns the resourceVersion that an object had when its manifest was last applied.
func (a *appliedTracker) appliedVersion(key objectKey) (version string, isApplied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state, ok := a.applied[key.work][key]
	return state.resourceVersion, ok
}

// isUnchanged reports whether exactly this manifest was applied, and neither the object in the
// member nor the rules have changed since.
func (a *appliedTracker) isUnchanged(key objectKey, manifest, observed *unstructured.Unstructured) bool {
	a.mu.Lock()
	state, ok := a.applied[key.work][key]
	a.mu.Unlock()
	return ok && !state.hasOldRules && state.manifestHash == work.PrunedHash(manifest) && state.observedHash == work.PrunedHash(observed)
}

func workKey(karmadaWork *workv1alpha1.Work) types.NamespacedName {
	return types.NamespacedName{Namespace: karmadaWork.Namespace, Name: karmadaWork.Name}
}

// deleteWork deletes the records of a Work that no longer exists.
func (a *appliedTracker) deleteWork(karmadaWork types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.applied, karmadaWork)
	delete(a.reportedDispatching, karmadaWork)
	delete(a.lastWrites, karmadaWork)
	a.ruleChanges.Delete(karmadaWork)
}

// deleteNamespace deletes the records of all Works in a namespace.
func (a *appliedTracker) deleteNamespace(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	deleteKeysIn(a.applied, namespace)
	deleteKeysIn(a.reportedDispatching, namespace)
	deleteKeysIn(a.lastWrites, namespace)
	deleteKeysIn(a.ruleChanges, namespace)
}

func deleteKeysIn[V any](records map[types.NamespacedName]V, namespace string) {
	maps.DeleteFunc(records, func(key types.NamespacedName, _ V) bool { return key.Namespace == namespace })
}

// statusDelay is the time within which a new status is expected after a write.
const statusDelay = 10 * time.Second

// recordWrite records whether a pass wrote to the member, and reports whether this or an earlier
// pass wrote within statusDelay. Earlier passes count because a change of the Work or of its rules may
// start a pass that finds nothing to do before the status arrives.
func (a *appliedTracker) recordWrite(karmadaWork types.NamespacedName, wrote bool, now time.Time) (isRecent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wrote {
		a.lastWrites[karmadaWork] = now
	}
	at, ok := a.lastWrites[karmadaWork]
	if ok && now.Sub(at) >= statusDelay {
		delete(a.lastWrites, karmadaWork)
		return false
	}
	return ok
}

// recordDispatching records the status of the Dispatching condition and reports whether this status
// is new. It does not read the condition from the Work, because the condition is written later.
func (a *appliedTracker) recordDispatching(karmadaWork *workv1alpha1.Work, status string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	isReported := a.reportedDispatching[workKey(karmadaWork)] == status
	a.reportedDispatching[workKey(karmadaWork)] = status
	return !isReported
}
