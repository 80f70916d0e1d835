package bindingstatus

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// template returns the stored template.
func (f *fixture) template() *appsv1.Deployment {
	f.t.Helper()
	template := webTemplate()
	if err := f.store.Get(f.t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		f.t.Fatal(err)
	}
	return template
}

// conditionTexts returns the conditions of a Deployment as texts.
func conditionTexts(status appsv1.DeploymentStatus) []string {
	var texts []string
	for _, c := range status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}

// takeEvents returns the events since the last call.
func (f *fixture) takeEvents() []string {
	var events []string
	for {
		select {
		case event := <-f.recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func TestTemplateWithApplyErrorIsNotAvailable(t *testing.T) {
	failed := webWork("m2")
	failed.Status.Conditions[0].Status, failed.Status.Conditions[0].Message = "False", "exceeded quota: small"
	w := newFixture(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), failed)
	w.expectWrites("status of web-deployment", "status of web")
	const cause = "m2: not applied: exceeded quota: small"
	want := []string{"Available=False NotApplied: " + cause, "Progressing=False NotApplied: " + cause}
	if diff := cmp.Diff(want, conditionTexts(w.template().Status)); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
	if observed := w.template().Status.ObservedGeneration; observed != 0 {
		t.Errorf("observedGeneration is %d", observed)
	}

	updateStored(w, webWork("m2"), func(of *workv1alpha1.Work) { of.Status = webWork("m2").Status })
	w.expectWrites("status of web-deployment", "status of web")
	want = []string{"Available=True MinimumReplicasAvailable: True in every cluster", "Progressing=True NewReplicaSetAvailable: True in every cluster"}
	if diff := cmp.Diff(want, conditionTexts(w.template().Status)); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
	if observed := w.template().Status.ObservedGeneration; observed != 1 {
		t.Errorf("observedGeneration is %d", observed)
	}
}

func TestQuotaFailureIsRecordedOnce(t *testing.T) {
	small := webWork("m2")
	small.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	small.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(`{"resourceTemplateGeneration":1,"conditions":[` +
		`{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota: small"}]}`)}
	w := newFixture(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), small)
	w.reconcile() // an unhealthy workload may be in a rollout
	w.passLagDelay()
	_, writes := w.reconcile()
	if diff := cmp.Diff([]string{"status of web-deployment", "status of web"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	const event = "Warning WorkloadUnhealthy cluster m2: FailedCreate: exceeded quota: small"
	if diff := cmp.Diff([]string{event, event}, w.takeEvents()); diff != "" { // on the binding and on the template
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.passLagDelay()
	if _, writes := w.reconcile(); len(writes) > 0 || len(w.takeEvents()) > 0 {
		t.Errorf("an unchanged failure is recorded, or written: %q", writes)
	}
}
