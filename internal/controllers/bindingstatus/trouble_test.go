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

// template is the stored template.
func (w *world) template() *appsv1.Deployment {
	w.t.Helper()
	template := webTemplate()
	if err := w.store.Get(w.t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		w.t.Fatal(err)
	}
	return template
}

// said are the conditions of a Deployment as texts.
func said(status appsv1.DeploymentStatus) []string {
	var texts []string
	for _, c := range status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}

// recorded are the events since the last call.
func (w *world) recorded() []string {
	var events []string
	for {
		select {
		case event := <-w.recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func TestATemplateThatOneClusterRefusedIsNotAvailable(t *testing.T) {
	refused := webWork("m2")
	refused.Status.Conditions[0].Status, refused.Status.Conditions[0].Message = "False", "exceeded quota: small"
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), refused)
	w.wrote("status of web-deployment", "status of web")
	const cause = "m2: not applied: exceeded quota: small"
	want := []string{"Available=False NotApplied: " + cause, "Progressing=False NotApplied: " + cause}
	if diff := cmp.Diff(want, said(w.template().Status)); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
	if observed := w.template().Status.ObservedGeneration; observed != 0 {
		t.Errorf("generation %d is said to be observed", observed)
	}

	change(w, webWork("m2"), func(of *workv1alpha1.Work) { of.Status = webWork("m2").Status })
	w.wrote("status of web-deployment", "status of web")
	want = []string{"Available=True MinimumReplicasAvailable: True in every cluster", "Progressing=True NewReplicaSetAvailable: True in every cluster"}
	if diff := cmp.Diff(want, said(w.template().Status)); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
	if observed := w.template().Status.ObservedGeneration; observed != 1 {
		t.Errorf("generation %d is said to be observed", observed)
	}
}

func TestAWorkloadThatAQuotaKeepsSmallIsRecordedOnce(t *testing.T) {
	small := webWork("m2")
	small.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	small.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(`{"resourceTemplateGeneration":1,"conditions":[` +
		`{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota: small"}]}`)}
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), small)
	w.pass() // a workload that is not healthy may be on its way
	w.later()
	_, writes := w.pass()
	if diff := cmp.Diff([]string{"status of web-deployment", "status of web"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	const event = "Warning WorkloadUnhealthy cluster m2: FailedCreate: exceeded quota: small"
	if diff := cmp.Diff([]string{event, event}, w.recorded()); diff != "" { // on the binding and on the template
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.later()
	if _, writes := w.pass(); len(writes) > 0 || len(w.recorded()) > 0 {
		t.Errorf("the same again is recorded, or written: %q", writes)
	}
}
