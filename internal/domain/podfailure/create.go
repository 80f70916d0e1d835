package podfailure

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FailedCreate is the reason with which controllers of a member record that a Pod
// was refused.
const FailedCreate = "FailedCreate"

// namedPod is the name of a Pod, which is another one at every try.
var namedPod = regexp.MustCompile(`pods "[^"]*"`)

// FromEvents returns why Pods are refused in a member: the newest of the events
// about a workload that are not older than since. StatefulSets and DaemonSets say
// it nowhere else.
func FromEvents(events []corev1.Event, since time.Time) (failure Failure, ok bool) {
	newest := since
	for i := range events {
		event := &events[i]
		if at := timeOf(event); event.Reason == FailedCreate && !at.Before(newest) {
			newest, ok = at, true
			failure = failureOf(event.Reason, namedPod.ReplaceAllString(event.Message, "pods"))
		}
	}
	return failure, ok
}

func timeOf(event *corev1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}

// LacksPods reports whether a StatefulSet or a DaemonSet has fewer Pods than it
// wants.
func LacksPods(workload *unstructured.Unstructured) bool {
	number := func(path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(workload.Object, path...)
		return value
	}
	switch workload.GetKind() {
	case "StatefulSet":
		return number("status", "replicas") < number("spec", "replicas")
	case "DaemonSet":
		return number("status", "currentNumberScheduled") < number("status", "desiredNumberScheduled")
	default:
		return false
	}
}
