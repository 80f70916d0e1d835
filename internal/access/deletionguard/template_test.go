package deletionguard

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
)

func TestDeletionWithoutBindingNeedsProofOfTemplate(t *testing.T) {
	tests := map[string]struct {
		stored []client.Object
		change func(*guardFixture)
		want   guard.Action
		reason guard.Reason
	}{
		"the template was deleted": {want: guard.Delete},
		"the template exists and is claimed": {
			stored: []client.Object{templateObject("a")}, want: guard.Hold, reason: guard.ReasonTemplateInUse},
		"the template exists and is unclaimed": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }()}, want: guard.Delete},
		"a workload depends on the template that no policy claims": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), bindingWithDependencies(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`)},
			want:   guard.Hold, reason: guard.ReasonTemplateInUse},
		"a workload depends on another template": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), bindingWithDependencies(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"b"}]`)},
			want:   guard.Delete},
		"the dependencies of a workload cannot be decoded": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), bindingWithDependencies(`[{`)},
			want:   guard.Hold, reason: guard.ReasonTemplateInUse},
		"another template has the same name": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.UID = "next"; return o }()}, want: guard.Delete},
		"the API server does not answer": {
			change: func(w *guardFixture) { w.unreadableType = "*v1.PartialObjectMetadata" }, want: guard.Hold, reason: guard.ReasonTemplateUnreadable},
		"the kind is not served": {
			change: func(w *guardFixture) { w.isKindUnserved = true }, want: guard.Hold, reason: guard.ReasonTemplateNotServed},
		"discovery fails": {
			change: func(w *guardFixture) {
				w.isKindUnserved, w.discovery.err = true, apierrors.NewServiceUnavailable("later")
			}, want: guard.Hold, reason: guard.ReasonTemplateUnreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGuardFixture(t, test.stored...)
			if test.change != nil {
				test.change(w)
			}
			decision, err := w.decide(t.Context(), readyCluster(), newDeletedWork("a"), true)
			if err != nil || decision.Action != test.want || decision.Reason != test.reason {
				t.Errorf("action %d, reason %d, error %v", decision.Action, decision.Reason, err)
			}
			if _, err := w.decide(t.Context(), readyCluster(), newDeletedWork("a"), true); err != nil || w.templateReads > 1 {
				t.Errorf("%d reads of the template for two decisions, error %v", w.templateReads, err)
			}
		})
	}
}

// bindingWithDependencies returns the binding of a workload with the given dependencies annotation.
func bindingWithDependencies(annotation string) *workv1alpha2.ResourceBinding {
	bound := newBinding("web", "m1")
	bound.Annotations = map[string]string{workv1alpha2.DependenciesAnnotation: annotation}
	bound.Spec.PropagateDeps = true
	return bound
}

func TestTemplateOfRenamedObjectIsFoundByBindingName(t *testing.T) {
	renamed := newDeletedWork("a")
	renamed.Annotations[workv1alpha2.ResourceBindingNameAnnotation] = "b-configmap"
	template := templateObject("b")
	template.UID = "uid-a"
	if decision, err := newGuardFixture(t, template).decide(t.Context(), readyCluster(), renamed, true); err != nil || decision.Reason != guard.ReasonTemplateInUse {
		t.Errorf("with the template: action %d, reason %d, error %v", decision.Action, decision.Reason, err)
	}
	if decision, err := newGuardFixture(t).decide(t.Context(), readyCluster(), renamed, true); err != nil || decision.Reason != guard.ReasonTemplateUnreadable {
		t.Errorf("without the template: action %d, reason %d, error %v", decision.Action, decision.Reason, err)
	}
}

func TestTemplateOfBindingWithSecondName(t *testing.T) {
	karmadaWork := newDeletedWork("a")
	karmadaWork.Annotations[workv1alpha2.ResourceBindingNameAnnotation] = binding.Names(schema.GroupKind{Kind: "ConfigMap"}, "a")[1]
	if decision, err := newGuardFixture(t).decide(t.Context(), readyCluster(), karmadaWork, true); err != nil || decision.Action != guard.Delete {
		t.Errorf("without the template: action %d, reason %d, error %v", decision.Action, decision.Reason, err)
	}
	if decision, err := newGuardFixture(t, templateObject("a")).decide(t.Context(), readyCluster(), karmadaWork, true); err != nil || decision.Reason != guard.ReasonTemplateInUse {
		t.Errorf("with the template: action %d, reason %d, error %v", decision.Action, decision.Reason, err)
	}
}

func TestUnreachableClusterCausesNoReads(t *testing.T) {
	w, lost := newGuardFixture(t), readyCluster()
	lost.Status = clusterv1alpha1.ClusterStatus{}
	decision, err := w.decide(t.Context(), lost, newDeletedWork("a"), false)
	if err != nil || decision.Reason != guard.ReasonClusterUnreachable || w.templateReads != 0 {
		t.Errorf("action %d after %d reads, error %v", decision.Action, w.templateReads, err)
	}
}

func TestDeletionPermissionOfAgent(t *testing.T) {
	works, stored := newDeletedWorks(3, func(name string) []client.Object { return []client.Object{newBinding(name)} })
	w := newGuardFixture(t, stored...)
	w.readEpoch = fixedEpoch(installedEpoch, nil)
	allowed := works[0]
	allowed.Annotations[workv1alpha1.DeletionAllowedAnnotation] = installedEpoch.PermissionValue(allowed)
	if decision, err := w.decide(t.Context(), readyCluster(), allowed, true); err != nil || decision.Action != guard.Delete {
		t.Errorf("action %d, error %v", decision.Action, err)
	}
	other := works[1]
	other.Annotations[workv1alpha1.DeletionAllowedAnnotation] = installedEpoch.PermissionValue(allowed)
	if decision, err := w.decide(t.Context(), readyCluster(), other, true); err != nil || decision.Action != guard.Hold {
		t.Errorf("the permission for another Work is accepted: action %d, error %v", decision.Action, err)
	}
	backedUp := works[2]
	backedUp.Annotations[workv1alpha1.DeletionAllowedAnnotation] = restoredEpoch.PermissionValue(backedUp)
	if decision, err := w.decide(t.Context(), readyCluster(), backedUp, true); err != nil || decision.Action != guard.Hold {
		t.Errorf("the permission of another epoch is accepted: action %d, error %v", decision.Action, err)
	}
	wanted := newGuardFixture(t, newBinding("c00", "m1"))
	if decision, err := wanted.decide(t.Context(), readyCluster(), allowed, true); err != nil || decision.Action != guard.Keep {
		t.Errorf("the binding wants the cluster again: action %d, error %v", decision.Action, err)
	}
}

func TestHeldDeletionIsReportedOnce(t *testing.T) {
	w, karmadaWork := newGuardFixture(t, templateObject("a")), newDeletedWork("a")
	for _, test := range []struct {
		after time.Duration
		held  int
	}{{0, 0}, {5 * time.Second, 1}, {time.Minute, 1}} {
		w.now = func() time.Time { return noon.Add(test.after) }
		decision, err := w.decide(t.Context(), readyCluster(), karmadaWork, true)
		if err != nil {
			t.Fatal(err)
		}
		if w.hold(readyCluster(), karmadaWork, decision); decision.RecheckAfter <= 0 {
			t.Error("the deletion is not decided again")
		}
		if got := int(testutil.ToFloat64(w.works.heldGauge.WithLabelValues("m1", workv1alpha1.WorkBindingMissingReason))); got != test.held {
			t.Errorf("after %s %d deletions are counted as held, want %d", test.after, got, test.held)
		}
	}
	w.StopTrackingWork(client.ObjectKeyFromObject(karmadaWork))
	if len(w.works.works) != 0 {
		t.Error("a Work that no longer exists is held")
	}
}
