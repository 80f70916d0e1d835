package scheduler

import (
	"errors"
	"fmt"
	"sync"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// tellResult tells of new clusters on the template, which is where users look.
func (s *scheduler) tellResult(p pass, desired binding.Object, v verdict) {
	if v.err != nil || sameTargets(p.stored.BindingSpec().Clusters, desired.BindingSpec().Clusters) {
		return
	}
	template := binding.Template(desired)
	s.events.Decided(template, workv1alpha2.EventReasonScheduleBindingSucceed, "%s", successMessage(desired))
}

func successMessage(of binding.Object) string {
	colon := ":"
	if !binding.Namespaced(of) {
		colon = ""
	}
	return fmt.Sprintf("%s Result%s {%s}", messageScheduled, colon, placement.DescribeTargets(of.BindingSpec()))
}

// tellFailures tells why the binding, or some of its affinity groups, could not be
// placed: on the binding and on the template, once until the causes change. A
// binding whose failures were told is told the result as well, or they would be
// the last that is heard of it.
func (s *scheduler) tellFailures(p pass, v verdict) {
	failures := failuresOf(p.stored, v)
	if !s.told.differs(p.request, failures) {
		return
	}
	template := binding.Template(p.stored)
	for _, err := range failures {
		s.events.Failed(p.stored, workv1alpha2.EventReasonScheduleBindingFailed, err)
		s.events.Failed(template, workv1alpha2.EventReasonScheduleBindingFailed, err)
	}
	if len(failures) > 0 {
		return
	}
	s.events.Recovered(p.stored, workv1alpha2.EventReasonScheduleBindingFailed)
	s.events.Recovered(template, workv1alpha2.EventReasonScheduleBindingFailed)
	if v.reason == workv1alpha2.BindingReasonSuccess {
		s.events.Decided(p.stored, workv1alpha2.EventReasonScheduleBindingSucceed, "%s", successMessage(p.stored))
	}
}

// failuresOf are the failures to tell of, those of the affinity groups first.
func failuresOf(of binding.Object, v verdict) []error {
	var failures []error
	for _, group := range v.groups {
		failures = append(failures, fmt.Errorf("failed to schedule %s(%s) with clusterAffinities index(%d) %q: %w",
			kindOf(of), requestOf(of), group.Index, group.Name, group.Err))
	}
	if v.err == nil {
		return failures
	}
	if v.message == "" || v.message == v.err.Error() {
		return append(failures, v.err)
	}
	return append(failures, errors.New(v.message))
}

func kindOf(of binding.Object) string {
	if binding.Namespaced(of) {
		return workv1alpha2.ResourceKindResourceBinding
	}
	return workv1alpha2.ResourceKindClusterResourceBinding
}

func applied(of binding.Object) string {
	return of.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
}

// told remembers the failures of each binding as a whole, so that the failures of
// several affinity groups do not take turns in being news.
type told struct {
	mu   sync.Mutex
	last map[request]string
}

func newTold() *told { return &told{last: map[request]string{}} }

// differs notes the failures and reports whether they are others than before.
func (t *told) differs(r request, failures []error) bool {
	text := ""
	if len(failures) > 0 {
		text = errors.Join(failures...).Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[r] == text {
		return false
	}
	if text == "" {
		delete(t.last, r)
		return true
	}
	t.last[r] = text
	return true
}

func (t *told) forget(r request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, r)
}
