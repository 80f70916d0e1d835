package explain

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestSuspensionIsShown(t *testing.T) {
	suspended := true
	delivered := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "web"}}
	delivered.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	held := delivered.DeepCopy()
	held.Spec.SuspendDispatching = &suspended
	bound := func(suspension *workv1alpha2.Suspension) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{}
		b.Spec.Suspension = suspension
		return b
	}
	dispatching := &workv1alpha2.Suspension{}
	dispatching.Dispatching = &suspended
	tests := map[string]struct{ got, want string }{
		"a delivered Work":            {newWorkNode(bound(nil), delivered).State, "Applied"},
		"a suspended Work":            {newWorkNode(bound(nil), held).State, "DispatchingSuspended, Applied"},
		"a suspended binding":         {newWorkNode(bound(dispatching), delivered).State, "DispatchingSuspended, Applied"},
		"the scheduling is suspended": {newBindingNode(bound(&workv1alpha2.Suspension{Scheduling: &suspended})).State, "SchedulingSuspended, FullyApplied not reported"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %q, want %q", test.got, test.want)
			}
		})
	}
}
