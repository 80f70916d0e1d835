package deletionguard

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
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// fixedEpoch returns a function that always reads the same epoch.
func fixedEpoch(now epoch.Epoch, err error) EpochReader {
	return func(context.Context) (epoch.Epoch, error) { return now, err }
}

var (
	installedEpoch = epoch.Epoch{ID: "a", Cause: epoch.CauseInstalled}
	restoredEpoch  = epoch.Epoch{ID: "b", Cause: epoch.CauseRestored}
)

func TestRestoreHoldsDeletionsUntilConfirmed(t *testing.T) {
	unread := errors.New("no answer")
	dropped, wanted := []client.Object{healthyBinding("web", "m2")}, []client.Object{newBinding("web", "m1")}
	left := readyCluster()
	left.DeletionTimestamp = &metav1.Time{Time: noon}
	tests := map[string]struct {
		epoch   EpochReader
		cluster *clusterv1alpha1.Cluster
		stored  []client.Object
		want    guard.Action
		failure error
	}{
		"without epochs nothing is held":                               {nil, readyCluster(), dropped, guard.Delete, nil},
		"without a restore nothing is held":                            {fixedEpoch(installedEpoch, nil), readyCluster(), dropped, guard.Delete, nil},
		"after a restore every deletion is held":                       {fixedEpoch(restoredEpoch, nil), readyCluster(), dropped, guard.Hold, nil},
		"after a restore deletions in a cluster that unjoins are held": {fixedEpoch(restoredEpoch, nil), left, dropped, guard.Hold, nil},
		"after a restore an object that is wanted is handed over":      {fixedEpoch(restoredEpoch, nil), readyCluster(), wanted, guard.Keep, nil},
		"an epoch that cannot be read holds every deletion":            {fixedEpoch(epoch.Epoch{}, unread), readyCluster(), dropped, guard.Hold, unread},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGuardFixture(t, test.stored...)
			w.readEpoch = test.epoch
			decision, err := w.decide(t.Context(), test.cluster, newDeletedWork("web"), true)
			if decision.Action != test.want || !errors.Is(err, test.failure) {
				t.Errorf("action %v, %v; want %v, %v", decision.Action, err, test.want, test.failure)
			}
		})
	}
}

func TestRestoreWritesOneEventPerCluster(t *testing.T) {
	w, recorder := newGuardFixture(t, newBinding("a"), newBinding("b")), record.NewFakeRecorder(10)
	w.readEpoch, w.events = fixedEpoch(restoredEpoch, nil), loop.NewEvents(recorder)
	for _, name := range []string{"a", "b", "a"} {
		decision, err := w.decide(t.Context(), readyCluster(), newDeletedWork(name), true)
		if err != nil {
			t.Fatal(err)
		}
		w.hold(readyCluster(), newDeletedWork(name), decision)
	}
	if got, want := <-recorder.Events, "Warning "+clusterv1alpha1.EventReasonRestoreNotConfirmed+" "+restoredEpoch.HoldMessage(); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	if more := len(recorder.Events); more != 0 {
		t.Errorf("%d more events", more)
	}
}

// After a user has confirmed a restore, the guard decides again. A deletion that was held only
// because of the restore is not held for the number of deletions.
func TestRestoreHoldIsNotMassDeletion(t *testing.T) {
	for reason, want := range map[string]guard.Reason{
		workv1alpha1.WorkClusterChangedReason:      guard.ReasonClusterChanged,
		workv1alpha1.WorkRestoreNotConfirmedReason: guard.NoReason,
	} {
		karmadaWork := newDeletedWork("web")
		karmadaWork.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, Reason: reason}}
		decision, err := newGuardFixture(t, newBinding("web")).decide(t.Context(), readyCluster(), karmadaWork, true)
		if err != nil || decision.Facts.HeldFor != want || decision.Facts.Owner != guard.OwnerDropsWork {
			t.Errorf("%s: facts %+v, %v", reason, decision.Facts, err)
		}
	}
}

// A new process finds the conditions that the previous process wrote.
func TestHeldConditionOfEarlierProcessWritesNoEvent(t *testing.T) {
	w, recorder := newGuardFixture(t), record.NewFakeRecorder(10)
	w.events, w.isKindUnserved = loop.NewEvents(recorder), true
	w.now = func() time.Time { return noon.Add(time.Hour) }
	karmadaWork := newDeletedWork("web")
	decision, err := w.decide(t.Context(), readyCluster(), karmadaWork, true)
	if err != nil || decision.Action != guard.Hold {
		t.Fatalf("action %v, %v", decision.Action, err)
	}
	karmadaWork.Status.Conditions = []metav1.Condition{work.DeletionHeldCondition(karmadaWork, "m1", decision.Reason)}
	if w.hold(readyCluster(), karmadaWork, decision); len(recorder.Events) != 0 {
		t.Errorf("holding: %d events", len(recorder.Events))
	}
	karmadaWork.Status.Conditions = nil
	if w.hold(readyCluster(), karmadaWork, decision); len(recorder.Events) != 1 {
		t.Errorf("holding for the first time: %d events", len(recorder.Events))
	}
}
