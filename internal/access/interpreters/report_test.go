package interpreters

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
)

func TestReport(t *testing.T) {
	broken, busy := errors.New("broken"), fmt.Errorf("webhook a/b: %w", &interpreter.BusyError{Text: "8 calls run"})
	tests := map[string]struct {
		results []error
		want    string
	}{
		"a success is not reported":                    {results: []error{nil}},
		"a failure":                                    {results: []error{broken}, want: "False broken"},
		"a success after a failure":                    {results: []error{broken, nil}, want: "True The interpretation succeeds again."},
		"a busy webhook is not reported":               {results: []error{busy}},
		"a busy webhook changes no failure":            {results: []error{broken, busy}, want: "False broken"},
		"a busy webhook changes no success of earlier": {results: []error{broken, nil, busy}, want: "True The interpretation succeeds again."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := workv1alpha2.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bound).WithStatusSubresource(bound).Build()
			current := &workv1alpha2.ResourceBinding{}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(bound), current); err != nil {
				t.Fatal(err)
			}
			for _, result := range test.results {
				var err error
				current, err = Report(t.Context(), karmada, current, workv1alpha2.TemplateInterpreted, result, time.Unix(0, 0))
				if !errors.Is(err, result) {
					t.Fatalf("error %v, want %v", err, result)
				}
			}
			got := ""
			if condition := conditions.Get(current.Status.Conditions, workv1alpha2.TemplateInterpreted); condition != nil {
				got = fmt.Sprintf("%s %s", condition.Status, condition.Message)
			}
			if got != test.want {
				t.Errorf("condition %q, want %q", got, test.want)
			}
		})
	}
}

func TestReportOfAnOutdatedBinding(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	outdated := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "7"}}
	deleted := outdated.DeepCopy()
	deleted.Name = "api"
	stored := outdated.DeepCopy()
	stored.ResourceVersion = "8"
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	for _, bound := range []*workv1alpha2.ResourceBinding{outdated, deleted} {
		current, err := Report(t.Context(), karmada, bound, workv1alpha2.TemplateInterpreted, broken, time.Unix(0, 0))
		if current != bound || !loop.IsStale(err) || errors.Is(err, broken) {
			t.Errorf("%s: the error is %v, want only that the binding is out of date", bound.Name, err)
		}
	}
}
