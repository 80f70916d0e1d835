package scheduler

import (
	"errors"
	"fmt"
	"sync"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// recordSuccessEvent records an event on the template, where users look for it, if the targets have
// changed. The event is deferred while many bindings wait.
func (s *scheduler) recordSuccessEvent(p pass, desired binding.Object, out outcome) {
	if out.err != nil || haveSameTargets(p.stored.BindingSpec().Clusters, desired.BindingSpec().Clusters) {
		return
	}
	s.recordPlacementEvent(desired, out.failedEstimators)
}

// recordPlacementEvent records the binding's targets in an event on the template.
func (s *scheduler) recordPlacementEvent(placed binding.Object, failedEstimators map[string]string) {
	template := binding.TemplateReference(placed)
	message := withEstimatorNote(successMessage(placed), failedEstimators)
	s.deferredEvents.record(func() {
		s.events.RecordDecision(template, workv1alpha2.EventReasonScheduleBindingSucceed, "%s", message)
	})
}

func successMessage(bound binding.Object) string {
	colon := ":"
	if !binding.IsNamespaced(bound) {
		colon = ""
	}
	return fmt.Sprintf("%s Result%s {%s}", binding.MessageScheduled, colon, placement.DescribeTargets(bound.BindingSpec()))
}

// recordFailureEvents records on the binding and on the template why the binding, or some of its
// affinity groups, could not be scheduled. It repeats the events only if the causes change. After a
// reported failure, it also records the success on the binding, because the failure would otherwise
// remain the binding's last event.
func (s *scheduler) recordFailureEvents(p pass, out outcome) {
	failures := failureErrors(p.stored, out)
	if !s.reportedFailures.update(p.request, failures) {
		return
	}
	// The event may be deferred, so the function must not keep p, which holds the snapshot.
	stored, hasSucceeded := p.stored, out.reason == workv1alpha2.BindingReasonSuccess
	s.deferredEvents.record(func() { s.recordFailures(stored, hasSucceeded, failures) })
}

func (s *scheduler) recordFailures(stored binding.Object, hasSucceeded bool, failures []error) {
	template := binding.TemplateReference(stored)
	for _, err := range failures {
		s.events.RecordFailure(stored, workv1alpha2.EventReasonScheduleBindingFailed, err)
		s.events.RecordFailure(template, workv1alpha2.EventReasonScheduleBindingFailed, err)
	}
	if len(failures) > 0 {
		return
	}
	s.events.ClearFailure(stored, workv1alpha2.EventReasonScheduleBindingFailed)
	s.events.ClearFailure(template, workv1alpha2.EventReasonScheduleBindingFailed)
	if hasSucceeded {
		s.events.RecordDecision(stored, workv1alpha2.EventReasonScheduleBindingSucceed, "%s", successMessage(stored))
	}
}

// failureErrors returns the failures to report, those of affinity groups first.
func failureErrors(bound binding.Object, out outcome) []error {
	var failures []error
	for _, group := range out.failedGroups {
		failures = append(failures, fmt.Errorf("failed to schedule %s(%s) with clusterAffinities index(%d) %q: %w",
			bindingKind(bound), requestOf(bound), group.Index, group.Name, group.Err))
	}
	if out.err == nil {
		return failures
	}
	if out.message == "" || out.message == out.err.Error() {
		return append(failures, out.err)
	}
	return append(failures, errors.New(out.message))
}

func bindingKind(bound binding.Object) string {
	if binding.IsNamespaced(bound) {
		return workv1alpha2.ResourceKindResourceBinding
	}
	return workv1alpha2.ResourceKindClusterResourceBinding
}

// reportedFailures stores each binding's failures as a single text, so that a binding with several
// failed affinity groups does not alternate between their events.
type reportedFailures struct {
	mu       sync.Mutex
	messages map[request]string
}

func newReportedFailures() *reportedFailures {
	return &reportedFailures{messages: map[request]string{}}
}

// update stores the binding's failures and reports whether they have changed.
func (t *reportedFailures) update(r request, failures []error) bool {
	text := ""
	if len(failures) > 0 {
		text = errors.Join(failures...).Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.messages[r] == text {
		return false
	}
	if text == "" {
		delete(t.messages, r)
		return true
	}
	t.messages[r] = text
	return true
}

func (t *reportedFailures) remove(r request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.messages, r)
}
