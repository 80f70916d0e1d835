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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// takeOut takes a cluster that leaves out of the bindings that no scheduler takes it
// out of, and returns the bindings that still target it. A scheduler that is faster
// wins: the write fails if the binding was changed.
func (r *reconciler) takeOut(ctx context.Context, cluster *clusterv1alpha1.Cluster) ([]binding.Object, error) {
	targeting, err := r.targeting(ctx, cluster.Name)
	if err != nil {
		return nil, err
	}
	overdue := r.now().Sub(cluster.DeletionTimestamp.Time) >= domain.TakeOutAfter
	var remaining []binding.Object
	for _, bound := range targeting {
		why := unscheduled(bound, overdue)
		if why == "" {
			remaining = append(remaining, bound)
			continue
		}
		taken, err := r.takeOutOf(ctx, bound, cluster.Name, why)
		if err != nil {
			r.events.Failed(bound, workv1alpha2.EventReasonClusterRemoved, err)
		}
		if !taken {
			remaining = append(remaining, bound)
		}
	}
	return remaining, nil
}

// unscheduled says why no scheduler takes a cluster out of the binding; empty if one
// may still do so.
func unscheduled(bound binding.Object, overdue bool) string {
	spec := bound.BindingSpec()
	switch {
	case bound.GetDeletionTimestamp() != nil && !overdue:
		return ""
	case placement.Suspended(spec):
		return "its scheduling is suspended"
	case !placement.Schedulable(bound, spec):
		return "no policy claims its object"
	case overdue:
		return fmt.Sprintf("scheduler %s did not do so within %s", placement.SchedulerOf(spec), domain.TakeOutAfter)
	default:
		return ""
	}
}

// takeOutOf takes a cluster out of a binding, says so, and reports whether it did. A
// binding that was changed meanwhile is looked at again.
func (r *reconciler) takeOutOf(ctx context.Context, bound binding.Object, cluster, why string) (taken bool, err error) {
	rest := binding.Copy(bound)
	spec := rest.BindingSpec()
	spec.Clusters = slices.DeleteFunc(slices.Clone(spec.Clusters), func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
	if _, err := patch.Object(ctx, r.karmada, bound, rest); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, quiet(err)
	}
	message := fmt.Sprintf("cluster %s is being removed and was taken out of the binding, because %s", cluster, why)
	lacking := placement.Shortfall(rest.BindingSpec())
	if lacking != "" {
		message += ". " + lacking
	}
	template := binding.Template(rest)
	r.events.Decided(rest, workv1alpha2.EventReasonClusterRemoved, "%s", message)
	r.events.Decided(template, workv1alpha2.EventReasonClusterRemoved, "%s", message)
	if lacking == "" {
		return true, nil
	}
	return true, r.reportLacking(ctx, rest, message)
}

// statusTries bounds the tries to write a status that others write, too.
const statusTries = 4

// reportLacking says in the condition of a binding which replicas are not placed. A
// scheduler that reports later replaces the condition.
func (r *reconciler) reportLacking(ctx context.Context, bound binding.Object, message string) error {
	current := bound
	for try := 1; ; try++ {
		reported := binding.Copy(current)
		conditions.Set(&reported.BindingStatus().Conditions, metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonClusterRemoved, Message: message,
			ObservedGeneration: bound.GetGeneration(), LastTransitionTime: metav1.NewTime(r.now()),
		})
		_, err := patch.Status(ctx, r.karmada, current, reported)
		if !apierrors.IsConflict(err) || try == statusTries {
			return client.IgnoreNotFound(err)
		}
		current = binding.New(binding.Namespaced(bound))
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(bound), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		if current.GetGeneration() != bound.GetGeneration() {
			// What the message says may not hold any longer.
			return nil
		}
	}
}
