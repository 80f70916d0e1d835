package binding

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestInterpretationCondition(t *testing.T) {
	const kind = workv1alpha2.TemplateInterpreted
	failed := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: workv1alpha2.InterpreterFailedReason, Message: "line 3", ObservedGeneration: 4}
	recovered := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: workv1alpha2.InterpretedReason, Message: "The interpretation succeeds again.", ObservedGeneration: 4}
	other := failed
	other.Type = workv1alpha2.StatusAggregated
	tests := map[string]struct {
		stored []metav1.Condition
		err    error
		want   *metav1.Condition
	}{
		"a success needs no condition":                  {},
		"a success after another success":               {stored: []metav1.Condition{recovered}},
		"a success while another interpretation failed": {stored: []metav1.Condition{other}},
		"a success after a failure":                     {stored: []metav1.Condition{failed}, want: &recovered},
		"a failure":                                     {err: errors.New("line 3"), want: &failed},
		"a failure after a success":                     {stored: []metav1.Condition{recovered}, err: errors.New("line 3"), want: &failed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			bound.Generation, bound.Status.Conditions = 4, test.stored
			if diff := cmp.Diff(test.want, InterpretationCondition(bound, kind, test.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
