package judge

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// answering reads an epoch that is always the same.
func answering(now epoch.Epoch, err error) ReadEpoch {
	return func(context.Context) (epoch.Epoch, error) { return now, err }
}

var (
	installed = epoch.Epoch{ID: "a", Cause: epoch.Installed}
	restored  = epoch.Epoch{ID: "b", Cause: epoch.Restored}
)

func TestDeletionsWaitForTheConfirmationOfARestore(t *testing.T) {
	unread := errors.New("no answer")
	dropped, wanted := []client.Object{boundTo("web")}, []client.Object{boundTo("web", "m1")}
	left := readyCluster()
	left.DeletionTimestamp = &metav1.Time{Time: noon}
	tests := map[string]struct {
		epoch   ReadEpoch
		cluster *clusterv1alpha1.Cluster
		stored  []client.Object
		want    guard.Verdict
		failure error
	}{
		"a control plane without epochs holds nothing":   {nil, readyCluster(), dropped, guard.Delete, nil},
		"one that was not restored holds nothing":        {answering(installed, nil), readyCluster(), dropped, guard.Delete, nil},
		"a restored one holds every deletion":            {answering(restored, nil), readyCluster(), dropped, guard.Hold, nil},
		"also those in a cluster that leaves":            {answering(restored, nil), left, dropped, guard.Hold, nil},
		"what is wanted is handed over in the mean time": {answering(restored, nil), readyCluster(), wanted, guard.HandOver, nil},
		"an epoch that cannot be read allows none":       {answering(epoch.Epoch{}, unread), readyCluster(), dropped, guard.Hold, unread},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.stored...)
			w.epoch = test.epoch
			ruling, err := w.Decide(t.Context(), test.cluster, leaving("web"), true)
			if ruling.Verdict != test.want || !errors.Is(err, test.failure) {
				t.Errorf("verdict %v, %v; want %v, %v", ruling.Verdict, err, test.want, test.failure)
			}
		})
	}
}

func TestAClusterGetsOneEventForARestore(t *testing.T) {
	w, recorder := newWorld(t, boundTo("a"), boundTo("b")), record.NewFakeRecorder(10)
	w.epoch, w.events = answering(restored, nil), observe.NewEvents(recorder)
	for _, name := range []string{"a", "b", "a"} {
		ruling, err := w.Decide(t.Context(), readyCluster(), leaving(name), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Hold(readyCluster(), leaving(name), ruling); !errors.Is(err, ErrHeld) {
			t.Errorf("holding %s: %v", name, err)
		}
	}
	if got, want := <-recorder.Events, "Warning "+clusterv1alpha1.EventReasonRestoreNotConfirmed+" "+restored.Message(); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	if more := len(recorder.Events); more != 0 {
		t.Errorf("%d more events", more)
	}
}

// After the confirmation the guard decides anew: what waited only for it was not stopped
// as a mass deletion.
func TestWhatWaitedForARestoreWasNotStopped(t *testing.T) {
	for reason, want := range map[string]bool{
		workv1alpha1.WorkMassDeletionStoppedReason: true,
		workv1alpha1.WorkRestoreNotConfirmedReason: false,
	} {
		of := leaving("web")
		of.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, Reason: reason}}
		ruling, err := newWorld(t, boundTo("web")).Decide(t.Context(), readyCluster(), of, true)
		if err != nil || ruling.Facts.Held != want || ruling.Facts.Owner != guard.Drops {
			t.Errorf("%s: facts %+v, %v", reason, ruling.Facts, err)
		}
	}
}

// A process that starts finds the conditions of the one before.
func TestADeletionThatIsKnownToBeHeldIsNoEvent(t *testing.T) {
	w, recorder := newWorld(t), record.NewFakeRecorder(10)
	w.events, w.unserved = observe.NewEvents(recorder), true
	w.now = func() time.Time { return noon.Add(time.Hour) }
	of := leaving("web")
	ruling, err := w.Decide(t.Context(), readyCluster(), of, true)
	if err != nil || ruling.Verdict != guard.Hold {
		t.Fatalf("verdict %v, %v", ruling.Verdict, err)
	}
	of.Status.Conditions = []metav1.Condition{work.DeletionHeld(of, "m1", ruling.Reason)}
	if err := w.Hold(readyCluster(), of, ruling); !errors.Is(err, ErrHeld) || len(recorder.Events) != 0 {
		t.Errorf("holding: %v, %d events", err, len(recorder.Events))
	}
	of.Status.Conditions = nil
	if err := w.Hold(readyCluster(), of, ruling); !errors.Is(err, ErrHeld) || len(recorder.Events) != 1 {
		t.Errorf("holding for the first time: %v, %d events", err, len(recorder.Events))
	}
}
