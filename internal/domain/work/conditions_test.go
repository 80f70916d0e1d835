package work

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestWorkConditions(t *testing.T) {
	active := &workv1alpha1.Work{}
	active.Generation = 5
	active.Spec.Workload.Manifests = newManifests(configMapJSON, webJSON)
	held := active.DeepCopy()
	held.Spec.SuspendDispatching = new(true)
	tests := map[string]struct{ got, want metav1.Condition }{
		"dispatching": {DispatchingCondition(active), metav1.Condition{
			Type: "Dispatching", Status: "True", Reason: "Dispatching", Message: "Work is being dispatched to member clusters."}},
		"suspended": {DispatchingCondition(held), metav1.Condition{
			Type: "Dispatching", Status: "False", Reason: "SuspendDispatching", Message: "Work dispatching is in a suspended state."}},
		"all applied": {AppliedCondition(active, nil), metav1.Condition{
			Type: "Applied", Status: "True", Reason: "AppliedSuccessful", Message: "Manifest has been successfully applied"}},
		"one failed": {AppliedCondition(active, []error{errors.New("no")}), metav1.Condition{
			Type: "Applied", Status: "False", Reason: "AppliedFailed", Message: "Failed to apply all manifests (1/2): no"}},
		"all failed": {AppliedCondition(active, []error{errors.New("no"), errors.New("never")}), metav1.Condition{
			Type: "Applied", Status: "False", Reason: "AppliedFailed", Message: "Failed to apply all manifests (0/2): [no, never]"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.ObservedGeneration = 5
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
