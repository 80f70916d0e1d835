package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop/patch"
)

// maxStatusAttempts is the maximum number of attempts to write a status. Attempts can conflict because
// other clients also write the binding's status.
const maxStatusAttempts = 4

// writeTargets writes the targets, the graceful eviction tasks and the scheduler's annotations if they
// differ, and reports whether they differ. The patch is not computed from the whole bindings, because
// the scheduler changes nothing else. A write also records the spec and the time for which the targets were
// selected, or removes this record if selectedAt is zero, because scheduling failed.
func (s *scheduler) writeTargets(ctx context.Context, before, after binding.Object, selectedAt time.Time) (changed bool, err error) {
	changes := patch.Changes{Annotations: map[string]any{}, Spec: map[string]any{}}
	for _, name := range []string{
		policyv1alpha1.AppliedPlacementAnnotation, workv1alpha2.DepartedClustersAnnotation, workv1alpha2.ClustersWithoutAPIAnnotation,
	} {
		text, isSet := after.GetAnnotations()[name]
		if text == before.GetAnnotations()[name] {
			continue
		}
		changes.Annotations[name] = nil
		if isSet {
			changes.Annotations[name] = text
		}
	}
	older, newer := before.BindingSpec(), after.BindingSpec()
	if !slices.EqualFunc(older.Clusters, newer.Clusters, equalTargets) {
		setList(changes.Spec, "clusters", newer.Clusters)
	}
	if !patch.Equal(older.GracefulEvictionTasks, newer.GracefulEvictionTasks) {
		setList(changes.Spec, "gracefulEvictionTasks", newer.GracefulEvictionTasks)
	}
	_, isRecorded := before.GetAnnotations()[workv1alpha2.ScheduledStateAnnotation]
	switch {
	case len(changes.Spec) == 0:
	case !selectedAt.IsZero():
		binding.RecordScheduled(after, selectedAt)
		changes.Annotations[workv1alpha2.ScheduledStateAnnotation] = after.GetAnnotations()[workv1alpha2.ScheduledStateAnnotation]
	case isRecorded:
		changes.Annotations[workv1alpha2.ScheduledStateAnnotation] = nil
	}
	return patch.Apply(ctx, s.karmada, after, changes)
}

// setList sets the named field to the list, or to nil, which removes the field, if the list is empty.
func setList[T any](fields map[string]any, name string, list []T) {
	fields[name] = nil
	if len(list) > 0 {
		fields[name] = list
	}
}

func appliedPlacement(bound binding.Object) string {
	return bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
}

func equalTargets(a, b workv1alpha2.TargetCluster) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && slices.Equal(a.Components, b.Components)
}

// writeStatus writes the outcome to the binding's status. It retries conflicts immediately, because
// other clients write the same status. The scheduling time is the start of the pass, so that a
// reschedule that a user requests during the pass has a later time.
func (s *scheduler) writeStatus(ctx context.Context, p pass, out outcome) error {
	current, generation, now := p.stored, p.stored.GetGeneration(), metav1.NewTime(p.started)
	for attempt := 1; ; attempt++ {
		next := withReportedStatus(current, out, generation, now)
		changed, err := s.updateStatus(ctx, current, next)
		switch {
		case err == nil:
			// If another client has changed the spec, the write is not tracked, because the new
			// generation must still be processed.
			if changed && next.GetGeneration() == generation {
				s.ownWrites.RecordState(p.request, next)
			}
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || attempt == maxStatusAttempts:
			return err
		}
		current = binding.New(p.request.namespaced)
		if err := s.liveReader.Get(ctx, p.request.NamespacedName, current); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("reading the binding again: %w", err)
		}
	}
}

// updateStatus writes the scheduler's status fields that differ, and reports whether any differs.
func (s *scheduler) updateStatus(ctx context.Context, before, after binding.Object) (changed bool, err error) {
	older, newer, changes := before.BindingStatus(), after.BindingStatus(), map[string]any{}
	if !patch.Equal(older.Conditions, newer.Conditions) {
		changes["conditions"] = newer.Conditions
	}
	if older.SchedulerObservedGeneration != newer.SchedulerObservedGeneration {
		changes["schedulerObservedGeneration"] = newer.SchedulerObservedGeneration
	}
	if older.SchedulerObservedAffinityName != newer.SchedulerObservedAffinityName {
		changes["schedulerObservingAffinityName"] = nil
		if newer.SchedulerObservedAffinityName != "" {
			changes["schedulerObservingAffinityName"] = newer.SchedulerObservedAffinityName
		}
	}
	if !older.LastScheduledTime.Equal(newer.LastScheduledTime) {
		changes["lastScheduledTime"] = newer.LastScheduledTime
	}
	return patch.Apply(ctx, s.karmada, after, patch.Changes{Status: changes})
}
