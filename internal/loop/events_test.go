package loop

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"karmada.io/karmada/internal/domain/interpreter"
)

func recordedEvents(recorder *record.FakeRecorder) []string {
	var events []string
	for {
		select {
		case event := <-recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func TestRepeatedFailureIsOneEvent(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	events := NewEvents(recorder)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	first, second := errors.New("rejected"), errors.New("not found")
	busy := fmt.Errorf("scaling: %w", &interpreter.BusyError{Text: "8 calls run"})
	events.RecordFailure(object, "SyncFailed", first)
	events.RecordFailure(object, "SyncFailed", busy)
	events.RecordFailure(object, "SyncFailed", first)
	events.RecordFailure(object, "SyncFailed", second)
	events.ClearFailure(object, "SyncFailed")
	events.RecordFailure(object, "SyncFailed", second)
	want := []string{"Warning SyncFailed rejected", "Warning SyncFailed not found", "Warning SyncFailed not found"}
	if diff := cmp.Diff(want, recordedEvents(recorder)); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresByObjectAndReason(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	events := NewEvents(recorder)
	err := errors.New("rejected")
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	events.RecordFailure(a, "SyncFailed", err)
	events.RecordFailure(b, "SyncFailed", err)
	events.RecordFailure(a, "CleanupFailed", err)
	if got := len(recordedEvents(recorder)); got != 3 {
		t.Errorf("%d events, want 3", got)
	}
}

func TestFailuresByCluster(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	events := NewEvents(recorder)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	for range 3 { // retries, one cluster after the other
		events.RecordClusterFailure("m1", object, "SyncFailed", errors.New("rejected by m1"))
		events.RecordClusterFailure("m2", object, "SyncFailed", errors.New("rejected by m2"))
	}
	if !events.ClearClusterFailure("m1", object, "SyncFailed") || events.ClearClusterFailure("m1", object, "SyncFailed") {
		t.Error("a recovery must be reported exactly once")
	}
	events.RecordClusterFailure("m1", object, "SyncFailed", errors.New("rejected by m1"))
	events.RecordClusterFailure("m2", object, "SyncFailed", errors.New("rejected by m2"))
	want := []string{"Warning SyncFailed rejected by m1", "Warning SyncFailed rejected by m2", "Warning SyncFailed rejected by m1"}
	if diff := cmp.Diff(want, recordedEvents(recorder)); diff != "" {
		t.Error(diff)
	}
}

func TestRetriesOfManyFailuresRecordNoEvents(t *testing.T) {
	const objects = 50_000
	recorder := record.NewFakeRecorder(2 * objects)
	events := NewEvents(recorder)
	for range 2 { // one round of retries
		for i := range objects {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}
			events.RecordFailure(object, "SyncFailed", errors.New("rejected"))
		}
	}
	if got := len(recorder.Events); got != objects {
		t.Errorf("%d events for %d failures", got, objects)
	}
}

func TestFailuresThatNoLongerOccurAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(10)
		events := NewEvents(recorder)
		deleted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
		retried := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
		events.RecordFailure(deleted, "SyncFailed", errors.New("rejected"))
		for range 10 {
			events.RecordFailure(retried, "SyncFailed", errors.New("rejected"))
			<-time.After(failurePeriod - time.Second)
		}
		if got := len(recordedEvents(recorder)); got != 2 {
			t.Errorf("%d events, want 2", got)
		}
		if events.ClearFailure(deleted, "SyncFailed") || !events.ClearFailure(retried, "SyncFailed") {
			t.Error("the failure of the deleted object is stored, or the recent failure is not")
		}
	})
}
