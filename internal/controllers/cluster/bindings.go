package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop/patch"
)

// removeFromBindings removes a cluster that is being deleted from the bindings that no scheduler
// will update. It returns the bindings that still target the cluster. If a scheduler changes a
// binding at the same time, the change of the scheduler wins, because the write of this controller
// fails with a conflict.
func (r *reconciler) removeFromBindings(ctx context.Context, cluster *clusterv1alpha1.Cluster) ([]binding.Object, error) {
	targeting, err := r.bindingsOf(ctx, cluster.Name)
	if err != nil {
		return nil, err
	}
	overdue := r.now().Sub(cluster.DeletionTimestamp.Time) >= domain.BindingRemovalDelay
	var remaining []binding.Object
	for _, bound := range targeting {
		reason := removalReason(bound, overdue)
		if reason == "" {
			remaining = append(remaining, bound)
			continue
		}
		removed, err := r.removeFromBinding(ctx, bound, cluster.Name, reason)
		if err != nil {
			r.events.RecordFailure(bound, workv1alpha2.EventReasonClusterRemoved, err)
		}
		if !removed {
			remaining = append(remaining, bound)
		}
	}
	return remaining, nil
}

// removalReason returns the reason why no scheduler will remove the cluster from the binding. It
// returns an empty string if a scheduler may still remove the cluster.
func removalReason(bound binding.Object, overdue bool) string {
	spec := bound.BindingSpec()
	switch {
	case bound.GetDeletionTimestamp() != nil && !overdue:
		return ""
	case placement.IsSchedulingSuspended(spec):
		return "its scheduling is suspended"
	case !placement.IsSchedulable(bound, spec):
		return "no policy claims its object"
	case overdue:
		return fmt.Sprintf("scheduler %s did not remove it within %s", placement.SchedulerName(spec), domain.BindingRemovalDelay)
	default:
		return ""
	}
}

// removeFromBinding removes a cluster from a binding, records an event, and reports whether it
// removed the cluster. After a conflict the next pass retries.
func (r *reconciler) removeFromBinding(ctx context.Context, bound binding.Object, cluster, reason string) (removed bool, err error) {
	updated := binding.Copy(bound)
	spec := updated.BindingSpec()
	spec.Clusters = slices.DeleteFunc(slices.Clone(spec.Clusters),
		func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
	if _, err := patch.Object(ctx, r.karmada, bound, updated); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, ignoreConflict(err)
	}
	message := fmt.Sprintf("cluster %s is being removed, and was removed from the binding because %s", cluster, reason)
	shortfall := placement.DescribeShortfall(updated.BindingSpec())
	if shortfall != "" {
		message += ". " + shortfall
	}
	template := binding.TemplateReference(updated)
	r.events.RecordDecision(updated, workv1alpha2.EventReasonClusterRemoved, "%s", message)
	r.events.RecordDecision(template, workv1alpha2.EventReasonClusterRemoved, "%s", message)
	if shortfall == "" {
		return true, nil
	}
	return true, r.reportUnplaced(ctx, updated, message)
}

// maxStatusAttempts is the maximum number of attempts to write a status. Attempts can conflict,
// because other controllers also write this status.
const maxStatusAttempts = 4

// reportUnplaced sets the Scheduled condition of a binding to the message that replicas are not
// placed. The next result of a scheduler replaces the condition.
func (r *reconciler) reportUnplaced(ctx context.Context, bound binding.Object, message string) error {
	current := bound
	for attempt := 1; ; attempt++ {
		reported := binding.Copy(current)
		conditions.Set(&reported.BindingStatus().Conditions, metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonClusterRemoved, Message: message,
			ObservedGeneration: bound.GetGeneration(), LastTransitionTime: metav1.NewTime(r.now()),
		})
		_, err := patch.Status(ctx, r.karmada, current, reported)
		if !apierrors.IsConflict(err) || attempt == maxStatusAttempts {
			return client.IgnoreNotFound(err)
		}
		current = binding.New(binding.IsNamespaced(bound))
		key := client.ObjectKeyFromObject(bound)
		if err := r.live.Get(ctx, key, current); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading binding %s: %w", key, err)
		}
		if current.GetGeneration() != bound.GetGeneration() {
			// The message is not written, because it was computed for an earlier generation and may
			// be wrong for the current one.
			return nil
		}
	}
}
