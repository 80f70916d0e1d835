package scheduler

import (
	"errors"
	"fmt"
	"sync"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// recordSuccessEvent records an event on the template if the targets changed. It uses the template
// because users look for events there. The event is deferred while many bindings wait.
func (s *scheduler) recordSuccessEvent(p pass, desired binding.Object, v verdict) {
	if v.err != nil || sameTargets(p.stored.BindingSpec().Clusters, desired.BindingSpec().Clusters) {
		return
	}
	template := binding.TemplateReference(desired)
	message := withEstimatorNote(successMessage(desired), v.failedEstimators)
	s.deferredEvents.record(func() {
		s.events.RecordDecision(template, workv1alpha2.EventReasonScheduleBindingSucceed, "%s", message)
	})
}

func successMessage(bound binding.Object) string {
	colon := ":"
	if !binding.IsNamespaced(bound) {
		colon = ""
	}
	return fmt.Sprintf("%s Result%s {%s}", messageScheduled, colon, placement.DescribeTargets(bound.BindingSpec()))
}

// recordFailureEvents records why the binding, or some of its affinity groups, could not be
// scheduled. It records events on the binding and on the template, and repeats them only if the
// causes change. Other successes are recorded only on the template. The success that ends a
// reported failure is recorded on the binding too, because otherwise the failure would be the last
// event of the binding.
func (s *scheduler) recordFailureEvents(p pass, v verdict) {
	failures := failureErrors(p.stored, v)
	if !s.reportedFailures.update(p.request, failures) {
		return
	}
	// The event may be deferred, and p and v refer to the snapshot of all clusters.
	stored, hasSucceeded := p.stored, v.reason == workv1alpha2.BindingReasonSuccess
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

// failureErrors returns the failures to report. The failures of the affinity groups come first.
func failureErrors(bound binding.Object, v verdict) []error {
	var failures []error
	for _, group := range v.failedGroups {
		failures = append(failures, fmt.Errorf("failed to schedule %s(%s) with clusterAffinities index(%d) %q: %w",
			bindingKind(bound), requestOf(bound), group.Index, group.Name, group.Err))
	}
	if v.err == nil {
		return failures
	}
	if v.message == "" || v.message == v.err.Error() {
		return append(failures, v.err)
	}
	return append(failures, errors.New(v.message))
}

func bindingKind(bound binding.Object) string {
	if binding.IsNamespaced(bound) {
		return workv1alpha2.ResourceKindResourceBinding
	}
	return workv1alpha2.ResourceKindClusterResourceBinding
}

// reportedFailures stores the failures of each binding as one text, so that the failures of
// several affinity groups are not reported alternately.
type reportedFailures struct {
	mu       sync.Mutex
	messages map[request]string
}

func newReportedFailures() *reportedFailures {
	return &reportedFailures{messages: map[request]string{}}
}

// update stores the failures and reports whether they changed.
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
