package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestAppliedTrackerDistinguishesRepairsFromChanges(t *testing.T) {
	tracker, key := newAppliedTracker(), objectKey{}
	none := func(map[string]any) {}
	first, next := newDeployment(none), newDeployment(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} })
	if repair, _ := tracker.repairDelay(key, first, noon); repair {
		t.Error("the first write counts as a repair")
	}
	tracker.recordRepair(key, noon, "unknown")
	if message, retryAfter := tracker.driftConflict(key, noon); message != "" || retryAfter != 0 {
		t.Error("an object that was never applied has a drift conflict")
	}
	tracker.recordApplied(key, first, first)
	if repair, _ := tracker.repairDelay(key, next, noon); repair {
		t.Error("a change of the manifest counts as a repair")
	}
	now := noon
	for range 5 {
		repair, wait := tracker.repairDelay(key, first, now)
		if !repair || wait != 0 {
			t.Fatalf("repair %v after %v", repair, wait)
		}
		tracker.recordApplied(key, first, first)
		tracker.recordRepair(key, now, "tuner")
		now = now.Add(time.Millisecond)
	}
	if _, wait := tracker.repairDelay(key, first, now); wait == 0 {
		t.Error("repeated repairs have no backoff")
	}
	if message, retryAfter := tracker.driftConflict(key, now); message != "tuner" || retryAfter == 0 {
		t.Errorf("conflict message %q, retry after %v", message, retryAfter)
	}
	if _, wait := tracker.repairDelay(key, next, now); wait != 0 {
		t.Error("a change of the manifest waits for the backoff of repairs")
	}
	if message, retryAfter := tracker.driftConflict(key, now.Add(time.Minute)); retryAfter != 0 {
		t.Errorf("a conflict that ended is still reported: %q, %v", message, retryAfter)
	}
}

func TestAppliedTrackerReturnsAppliedVersion(t *testing.T) {
	tracker, key := newAppliedTracker(), objectKey{}
	applied := newDeployment(func(c map[string]any) { metadataOf(c)["resourceVersion"] = "7" })
	if version, isApplied := tracker.appliedVersion(key); isApplied {
		t.Errorf("an object that was never applied has the version %s", version)
	}
	tracker.recordApplied(key, applied, applied)
	if version, isApplied := tracker.appliedVersion(key); !isApplied || version != "7" {
		t.Errorf("the version is %q, want 7", version)
	}
}

func TestAppliedTrackerReportsANewDispatchingStatusOnce(t *testing.T) {
	tracker := newAppliedTracker()
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
	if !tracker.recordDispatching(karmadaWork, "False") || tracker.recordDispatching(karmadaWork, "False") || !tracker.recordDispatching(karmadaWork, "True") {
		t.Error("a status is not reported exactly once")
	}
	tracker.deleteWork(workKey(karmadaWork))
	if !tracker.recordDispatching(karmadaWork, "True") {
		t.Error("the status of a deleted Work is still recorded")
	}
}

func TestAppliedTrackerRecognizesAppliedManifests(t *testing.T) {
	tracker, key := newAppliedTracker(), objectKey{}
	first, next := newDeployment(func(map[string]any) {}), newDeployment(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} })
	if tracker.wasApplied(key, first) {
		t.Error("a manifest that was never applied counts as applied")
	}
	tracker.recordApplied(key, first, next)
	if !tracker.wasApplied(key, first) || tracker.wasApplied(key, next) {
		t.Error("applied and other manifests are not distinguished")
	}
}

func TestRemovedClusterIsNotTracked(t *testing.T) {
	tracker := newAppliedTracker()
	for _, namespace := range []string{"karmada-es-m1", "karmada-es-m2"} {
		karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}}}
		tracker.recordApplied(keyOf(karmadaWork, object), object, object)
		tracker.recordWrite(workKey(karmadaWork), true, noon)
		tracker.recordDispatching(karmadaWork, "True")
		tracker.ruleChanges.Insert(workKey(karmadaWork))
	}
	c := &controller{tracker: tracker, guard: newGuard(t, nil), deletionRates: newDeletionRates(1, 1)}
	c.stopTrackingCluster("m1")
	got := []int{len(tracker.applied), len(tracker.lastWrites), len(tracker.reportedDispatching), len(tracker.ruleChanges)}
	if diff := cmp.Diff([]int{1, 1, 1, 1}, got); diff != "" {
		t.Errorf("tracked Works (-want +got):\n%s", diff)
	}
}
