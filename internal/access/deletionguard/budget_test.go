package deletionguard

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/loop"
)

// newBudgetFixture returns a Guard whose budget is 5 templates for each namespace and 8 in total. Its
// clock is at the end of the gather period of the Works of newDeletedWork.
func newBudgetFixture(t *testing.T) *guardFixture {
	t.Helper()
	w := newGuardFixture(t)
	w.limits = guard.Limits{ChangedCluster: 20, Namespace: 5, Fleet: 8}
	w.now = func() time.Time { return noon.Add(guard.GatherPeriod) }
	return w
}

// deletedTemplate returns the Works of a deleted template in a number of clusters.
func deletedTemplate(namespace, name string, clusters int) []*workv1alpha1.Work {
	var works []*workv1alpha1.Work
	for i := range clusters {
		karmadaWork := newDeletedWork(name)
		karmadaWork.Namespace, karmadaWork.UID = fmt.Sprintf("karmada-es-m%d", i+1), types.UID(fmt.Sprintf("%s/%s/%d", namespace, name, i))
		karmadaWork.Annotations["resourcebinding.karmada.io/namespace"] = namespace
		works = append(works, karmadaWork)
	}
	return works
}

// decideAll decides twice about each Work, as controllers do before and after the gather period, and
// returns the number of held Works.
func (g *guardFixture) decideAll(t *testing.T, works []*workv1alpha1.Work) (held int) {
	t.Helper()
	for round := range 2 {
		for _, karmadaWork := range works {
			cluster := readyCluster()
			cluster.Name = karmadaWork.Namespace[len("karmada-es-"):]
			decision, err := g.decide(t.Context(), cluster, karmadaWork, true)
			if err != nil {
				t.Fatal(err)
			}
			if round == 1 && decision.Reason == guard.ReasonBudgetExceeded {
				held++
			}
		}
	}
	return held
}

func TestDeletionBudgetCountsTemplates(t *testing.T) {
	templates := func(namespace string, number, clusters int) []*workv1alpha1.Work {
		var works []*workv1alpha1.Work
		for i := range number {
			works = append(works, deletedTemplate(namespace, fmt.Sprintf("c%02d", i), clusters)...)
		}
		return works
	}
	tests := map[string]struct {
		works []*workv1alpha1.Work
		want  int
	}{
		"within the budget, in many clusters": {templates("shop", 5, 4), 0},
		"above the budget of a namespace":     {templates("shop", 6, 2), 12},
		"above the budget of the fleet":       {append(templates("shop", 5, 1), templates("bank", 4, 1)...), 9},
		"a few in several namespaces":         {append(templates("shop", 4, 2), templates("bank", 4, 2)...), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := newBudgetFixture(t).decideAll(t, test.works); got != test.want {
				t.Errorf("%d of %d Works are held, want %d", got, len(test.works), test.want)
			}
		})
	}
}

func TestDeletionWithBudgetWaitsForGatherPeriod(t *testing.T) {
	w, deleted := newBudgetFixture(t), newDeletedWork("web")
	w.now = func() time.Time { return noon.Add(time.Second) }
	if decision, err := w.decide(t.Context(), readyCluster(), deleted, true); err != nil || decision.RecheckAfter != guard.GatherPeriod-time.Second {
		t.Errorf("retry after %s, %v", decision.RecheckAfter, err)
	}
	w.limits = guard.DefaultLimits()
	if decision, err := w.decide(t.Context(), readyCluster(), deleted, true); err != nil || decision.RecheckAfter != 0 || decision.Action != guard.Delete {
		t.Errorf("without a budget: retry after %s, action %d, %v", decision.RecheckAfter, decision.Action, err)
	}
}

// The deletion of a Namespace in a member would delete the objects of the held Works in it.
func TestNamespaceOfHeldWorksIsHeld(t *testing.T) {
	w := newBudgetFixture(t)
	var works []*workv1alpha1.Work
	for i := range 6 {
		works = append(works, deletedTemplate("shop", fmt.Sprintf("c%02d", i), 1)...)
	}
	works = append(works, newNamespaceWork("gone"))
	if held := w.decideAll(t, works); held != len(works) {
		t.Errorf("%d of %d Works are held", held, len(works))
	}
}

func TestHeldBudgetDeletionNeedsDecision(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha1.Work)
		want   guard.Action
	}{
		"after a restart of the process": {func(*workv1alpha1.Work) {}, guard.Hold},
		"confirmed": {func(w *workv1alpha1.Work) {
			w.Annotations[workv1alpha1.HeldDeletionAnnotation] = guard.UserDecision(workv1alpha1.ConfirmHeldDeletion, w.UID)
		}, guard.Delete},
		"rejected": {func(w *workv1alpha1.Work) {
			w.Annotations[workv1alpha1.HeldDeletionAnnotation] = guard.UserDecision(workv1alpha1.RejectHeldDeletion, w.UID)
		}, guard.Keep},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmadaWork := newDeletedWork("web")
			karmadaWork.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDeletionBudgetExceededReason}}
			test.change(karmadaWork)
			if got, err := newBudgetFixture(t).decideAction(t, readyCluster(), karmadaWork); err != nil || got != test.want {
				t.Errorf("action %d, %v", got, err)
			}
		})
	}
}

func TestRecreatedTemplateTakesOverHeldObjects(t *testing.T) {
	w, recreated := newBudgetFixture(t), newBinding("web", "m1")
	recreated.Spec.Resource.UID = "uid-next"
	if err := w.store.Create(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	karmadaWork := newDeletedWork("web")
	karmadaWork.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDeletionBudgetExceededReason}}
	if got, err := w.decideAction(t, readyCluster(), karmadaWork); err != nil || got != guard.Keep {
		t.Errorf("action %d, %v", got, err)
	}
}

func TestBudgetWritesOneEventPerCluster(t *testing.T) {
	w, recorder := newBudgetFixture(t), record.NewFakeRecorder(10)
	w.events = loop.NewEvents(recorder)
	decision := Decision{Decision: guard.Decision{Reason: guard.ReasonBudgetExceeded, IsReported: true}}
	for _, name := range []string{"a", "b"} {
		w.hold(readyCluster(), newDeletedWork(name), decision)
	}
	if len(recorder.Events) != 1 {
		t.Errorf("%d events", len(recorder.Events))
	}
}

func TestRecentDeletionsAreForgotten(t *testing.T) {
	recent, group := newRecentDeletions(), deletionGroup{namespace: "shop"}
	for i := range 3 {
		recent.add(group, fmt.Sprint(i), noon)
	}
	if got := recent.add(group, "2", noon.Add(guard.Window)); got != 3 {
		t.Errorf("%d deletions within the window", got)
	}
	if got := recent.add(group, "4", noon.Add(guard.Window+guard.Window/5+time.Second)); got != 1 {
		t.Errorf("%d deletions after the window", got)
	}
	if got := recent.add(deletionGroup{cluster: "shop"}, "2", noon); got != 1 {
		t.Errorf("%d deletions in another group", got)
	}
}
