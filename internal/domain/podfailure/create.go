package podfailure

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FailedCreate is the event reason with which controllers of a member report that the API server
// rejected a Pod.
const FailedCreate = "FailedCreate"

// podNamePattern matches the name of a Pod in a message. The name is different at each attempt to
// create the Pod.
var podNamePattern = regexp.MustCompile(`pods "[^"]*"`)

// FromEvents returns the reason why Pods of a workload are rejected in a member. It parses the
// newest FailedCreate event that is not older than since. Events are used because StatefulSets and
// DaemonSets report the reason only in events.
func FromEvents(events []corev1.Event, since time.Time) (failure Failure, ok bool) {
	newest := since
	for i := range events {
		event := &events[i]
		if at := eventTime(event); event.Reason == FailedCreate && !at.Before(newest) {
			newest, ok = at, true
			failure = newFailure(event.Reason, podNamePattern.ReplaceAllString(event.Message, "pods"))
		}
	}
	return failure, ok
}

func eventTime(event *corev1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}

// LacksPods reports whether a StatefulSet or a DaemonSet has fewer Pods than desired.
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
