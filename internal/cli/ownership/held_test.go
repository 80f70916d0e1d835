package ownership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/guard"
)

func heldWork(cluster, name, manifest, reason string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	deleted := metav1.NewTime(time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC))
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: name, UID: types.UID("uid-" + name), DeletionTimestamp: &deleted, Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
	karmadaWork.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	karmadaWork.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, Reason: reason}}
	for _, change := range changes {
		change(karmadaWork)
	}
	return karmadaWork
}

const (
	shopConfig    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web"}}`
	bankConfig    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"bank","name":"web"}}`
	shopNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`
	budget        = workv1alpha1.WorkDeletionBudgetExceededReason
)

func newStore(t *testing.T, objects ...client.Object) heldWorkClient {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return heldWorkClient{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

func TestList(t *testing.T) {
	decided := func(w *workv1alpha1.Work) {
		w.Annotations = map[string]string{workv1alpha1.HeldDeletionAnnotation: guard.UserDecision(workv1alpha1.ConfirmHeldDeletion, w.UID)}
	}
	earlier := func(w *workv1alpha1.Work) {
		w.Annotations = map[string]string{workv1alpha1.HeldDeletionAnnotation: guard.UserDecision(workv1alpha1.ConfirmHeldDeletion, "earlier")}
	}
	notHeld := func(w *workv1alpha1.Work) { w.Status.Conditions[0].Status = metav1.ConditionFalse }
	alive := func(w *workv1alpha1.Work) { w.DeletionTimestamp = nil }
	works := newStore(t,
		heldWork("m1", "a", shopConfig, budget), heldWork("m2", "a", shopConfig, budget), heldWork("m1", "b", bankConfig, budget),
		heldWork("m1", "c", shopConfig, workv1alpha1.WorkNotReplacedReason), heldWork("m1", "d", shopNamespace, budget), heldWork("m1", "e", "{}", budget, earlier),
		heldWork("m1", "x", shopConfig, budget, decided), heldWork("m1", "y", shopConfig, budget, notHeld), heldWork("m1", "z", shopConfig, budget, alive),
	)
	tests := map[string]struct {
		selection heldFilter
		want      []string
	}{
		"all":                      {heldFilter{}, []string{"m1/a", "m1/b", "m1/c", "m1/d", "m1/e", "m2/a"}},
		"a namespace with its own": {heldFilter{namespace: "shop"}, []string{"m1/a", "m1/c", "m1/d", "m2/a"}},
		"a cluster":                {heldFilter{cluster: "m2"}, []string{"m2/a"}},
		"a reason":                 {heldFilter{reason: workv1alpha1.WorkNotReplacedReason}, []string{"m1/c"}},
		"nothing":                  {heldFilter{namespace: "shop", cluster: "m3"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := works.list(t.Context(), test.selection)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range found {
				names = append(names, found[i].name())
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("held deletions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecisionIsForOneWork(t *testing.T) {
	works := newStore(t, heldWork("m1", "a", shopConfig, budget))
	one := heldDeletion{Cluster: "m1", Work: "a", UID: "uid-a"}
	if err := works.write(t.Context(), &one, workv1alpha1.RejectHeldDeletion); err != nil {
		t.Fatal(err)
	}
	stored := &workv1alpha1.Work{}
	if err := works.karmada.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-m1", Name: "a"}, stored); err != nil {
		t.Fatal(err)
	}
	if confirmed, rejected := guard.ReadUserDecision(stored); confirmed || !rejected {
		t.Errorf("confirmed %v, rejected %v", confirmed, rejected)
	}
	gone := heldDeletion{Cluster: "m1", Work: "gone", UID: "uid-gone"}
	if err := works.write(t.Context(), &gone, workv1alpha1.RejectHeldDeletion); err != nil {
		t.Errorf("a deleted Work: %v", err)
	}
}

func TestSelectionIsExplicit(t *testing.T) {
	tests := map[string]struct {
		names     []string
		selection heldFilter
		all, ok   bool
	}{
		"nothing":                    {},
		"a name":                     {names: []string{"m1/a"}, ok: true},
		"a namespace":                {selection: heldFilter{namespace: "shop"}, ok: true},
		"everything":                 {all: true, ok: true},
		"everything and a namespace": {all: true, selection: heldFilter{namespace: "shop"}},
		"a name without a cluster":   {names: []string{"a"}},
		"a name with an empty part":  {names: []string{"m1/"}},
		"a name with three parts":    {names: []string{"m1/a/b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &heldOptions{selection: test.selection}
			if err := o.validateSelection(test.names, test.all); (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}
