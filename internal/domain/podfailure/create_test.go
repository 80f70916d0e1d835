package podfailure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestFromEvents(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(reason, message string, minutes int) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}
	}
	series := corev1.Event{Reason: FailedCreate, Message: "c", Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(time.Hour))}}
	tests := map[string]struct {
		events []corev1.Event
		want   Failure
	}{
		"no events": {},
		"a quota, without the name of the Pod": {
			[]corev1.Event{event(FailedCreate, `Error creating: pods "web-x7k2p" is forbidden: exceeded quota: small`, 1)},
			Failure{FailedCreate, "Error creating: pods is forbidden: exceeded quota: small"}},
		"the newest event counts":    {[]corev1.Event{event(FailedCreate, "b", 2), event(FailedCreate, "a", 1)}, Failure{FailedCreate, "b"}},
		"a series has its last time": {[]corev1.Event{series, event(FailedCreate, "b", 2)}, Failure{FailedCreate, "c"}},
		"an old event is ignored":    {[]corev1.Event{event(FailedCreate, "a", -1)}, Failure{}},
		"another reason is ignored":  {[]corev1.Event{event("SuccessfulCreate", "a", 1)}, Failure{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := FromEvents(tc.events, noon)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want != Failure{}) {
				t.Errorf("found = %v, failure (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestLacksPods(t *testing.T) {
	for text, want := range map[string]bool{
		`{kind: StatefulSet, spec: {replicas: 2}, status: {replicas: 1}}`:                   true,
		`{kind: StatefulSet, spec: {replicas: 2}, status: {replicas: 2}}`:                   false,
		`{kind: DaemonSet, status: {desiredNumberScheduled: 3, currentNumberScheduled: 2}}`: true,
		`{kind: DaemonSet, status: {desiredNumberScheduled: 3, currentNumberScheduled: 3}}`: false,
		`{kind: Deployment, spec: {replicas: 2}, status: {replicas: 1}}`:                    false,
		`{kind: StatefulSet, spec: {replicas: many}, status: {replicas: 1}}`:                false,
	} {
		object := &unstructured.Unstructured{}
		encoded, err := yaml.YAMLToJSON([]byte("{apiVersion: apps/v1, " + text[1:]))
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON(encoded); err != nil {
			t.Fatal(err)
		}
		if got := LacksPods(object); got != want {
			t.Errorf("LacksPods of %s = %v", text, got)
		}
	}
}
