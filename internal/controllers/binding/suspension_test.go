package binding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

func suspendedOn(clusters ...string) *workv1alpha2.Suspension {
	suspension := &workv1alpha2.Suspension{}
	if len(clusters) == 0 {
		suspension.Dispatching = new(true)
		return suspension
	}
	suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
	return suspension
}

// deliverWorks reports every Work as applied.
func (f *fixture) deliverWorks() {
	f.t.Helper()
	for _, each := range f.works() {
		each.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"}}
		f.update(&each)
	}
}

// keptClusters returns the message of the condition about kept Works.
func (f *fixture) keptClusters() string {
	condition := conditions.Get(f.binding().Status.Conditions, workv1alpha2.DeletionSuspended)
	if condition == nil {
		return ""
	}
	return condition.Message
}

func TestSuspensionKeepsWorks(t *testing.T) {
	tests := map[string]struct {
		suspension    *workv1alpha2.Suspension
		isUndelivered bool
		kept          []string
		message       string
	}{
		"dispatching to all clusters":     {suspension: suspendedOn(), kept: []string{"m1", "m2", "m3"}, message: "The objects stay in m1, m2, because"},
		"dispatching to one cluster":      {suspension: suspendedOn("m2"), kept: []string{"m2", "m3"}, message: "The objects stay in m2, because"},
		"dispatching to the target":       {suspension: suspendedOn("m3"), kept: []string{"m3"}},
		"only the scheduling":             {suspension: &workv1alpha2.Suspension{Scheduling: new(true)}, kept: []string{"m3"}},
		"Works that were never delivered": {suspension: suspendedOn(), isUndelivered: true, kept: []string{"m3"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), cluster("m2"), cluster("m3"), deployment(), bindingTo("m1", "m2", "m3"))
			w.reconcile()
			if !test.isUndelivered {
				w.deliverWorks()
			}
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Suspension, b.Spec.Clusters = test.suspension, b.Spec.Clusters[2:]
			})
			w.reconcile()
			if diff := cmp.Diff(test.kept, w.clustersWithWorks()); diff != "" {
				t.Errorf("clusters with Works (-want +got):\n%s", diff)
			}
			if got := w.keptClusters(); !strings.HasPrefix(got, test.message) || (got == "") != (test.message == "") {
				t.Errorf("message %q", got)
			}
			if _, requests := w.reconcile(); len(requests) > 0 {
				t.Errorf("the next reconcile writes %v", requests)
			}
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = nil })
			w.reconcile()
			if diff := cmp.Diff([]string{"m3"}, w.clustersWithWorks()); diff != "" || w.keptClusters() != "" {
				t.Errorf("after the resume: %s, clusters with Works (-want +got):\n%s", w.keptClusters(), diff)
			}
		})
	}
}

func TestSuspendedDeletedBindingWaits(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	w.reconcile()
	w.deliverWorks()
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = suspendedOn("m2") })
	if err := w.store.Delete(t.Context(), w.binding()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.reconcile()
	}
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" || w.binding() == nil {
		t.Fatalf("binding %v, clusters with Works (-want +got):\n%s", w.binding(), diff)
	}
	if got := w.keptClusters(); !strings.Contains(got, "kubectl patch resourcebinding web-deployment --namespace shop") {
		t.Errorf("message %q", got)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = nil })
	w.reconcile()
	if remaining := w.clustersWithWorks(); w.binding() != nil || len(remaining) > 0 {
		t.Errorf("after the resume, Works are left in %v", remaining)
	}
}

// A dependency is suspended in m2, because a workload that requires it there is suspended.
func TestSuspendedDependentKeepsWorks(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo())
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}}}
	})
	w.reconcile()
	w.deliverWorks()
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: `{"shop/api-deployment":["m2"]}`}
	})
	w.reconcile()
	for _, each := range w.works() {
		if got, want := *each.Spec.SuspendDispatching, each.Namespace == "karmada-es-m2"; got != want {
			t.Errorf("Work in %s is suspended: %v", each.Namespace, got)
		}
	}
	if _, requests := w.reconcile(); len(requests) > 0 {
		t.Errorf("the next reconcile writes %v", requests)
	}
	if err := w.store.Delete(t.Context(), w.binding()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters with Works (-want +got):\n%s", diff)
	}
	if got := w.keptClusters(); !strings.Contains(got, "for example shop/api-deployment") || strings.Contains(got, "kubectl") {
		t.Errorf("message %q", got)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil })
	w.reconcile()
	if remaining := w.clustersWithWorks(); w.binding() != nil || len(remaining) > 0 {
		t.Errorf("after the resume, Works are left in %v", remaining)
	}
}
