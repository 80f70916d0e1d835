package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop/patch"
)

// overdueAfter is the duration of a removal after which an event names the objects that block it.
const overdueAfter = domain.BindingRemovalDelay

// recordTaintEvents records an event that names the taints that changed because of the health of a
// cluster.
func (r *reconciler) recordTaintEvents(before, after *clusterv1alpha1.Cluster) {
	r.events.ClearFailure(after, clusterv1alpha1.EventReasonTaintClusterFailed)
	if equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		return
	}
	r.events.RecordDecision(after, clusterv1alpha1.EventReasonTaintClusterSucceed,
		"Health: taints are now [%s], before [%s]", formatTaints(after.Spec.Taints), formatTaints(before.Spec.Taints))
}

func formatTaints(taints []corev1.Taint) string {
	texts := make([]string, 0, len(taints))
	for i := range taints {
		texts = append(texts, taints[i].ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// isOverdue reports whether a removal has lasted so long that an event must name the objects that
// block it.
func (r *reconciler) isOverdue(cluster *clusterv1alpha1.Cluster) bool {
	return r.now().Sub(cluster.DeletionTimestamp.Time) >= overdueAfter
}

// reportRemains reports which objects block the removal of a cluster. It writes them to the
// conditions of the Cluster, and to an event if the removal is overdue. The names are sorted, so
// that messages do not change without a cause.
func (r *reconciler) reportRemains(ctx context.Context, cluster *clusterv1alpha1.Cluster, worksGone bool,
	targeting []binding.Object) error {
	remains := domain.RemainingObjects{WorksGone: worksGone}
	for _, bound := range targeting {
		remains.Bindings = append(remains.Bindings, bindingName(bound))
	}
	slices.Sort(remains.Bindings)
	works := &workv1alpha1.WorkList{}
	if !worksGone {
		if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)),
			client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing Works of cluster %q: %w", cluster.Name, err)
		}
		slices.SortFunc(works.Items, func(a, b workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	}
	for i := range works.Items {
		remains.Works = append(remains.Works, works.Items[i].Namespace+"/"+works.Items[i].Name)
	}
	if r.isOverdue(cluster) {
		r.recordBlockingWork(cluster, works.Items)
		if worksGone {
			r.recordBlockingBindings(cluster, remains.Bindings)
		}
	}
	return r.reportLeaving(ctx, cluster, remains)
}

// bindingName returns the name of a binding together with its namespace and its scheduler, if it
// has them.
func bindingName(bound binding.Object) string {
	name := bound.GetName()
	if bound.GetNamespace() != "" {
		name = bound.GetNamespace() + "/" + name
	}
	if scheduler := bound.BindingSpec().SchedulerName; scheduler != "" {
		name += " (scheduler " + scheduler + ")"
	}
	return name
}

// reportLeaving sets the conditions that show what the removal of a cluster waits for.
func (r *reconciler) reportLeaving(ctx context.Context, cluster *clusterv1alpha1.Cluster, remains domain.RemainingObjects) error {
	reported := cluster.DeepCopy()
	domain.SetLeavingConditions(reported, remains, r.now())
	if _, err := patch.Status(ctx, r.karmada, cluster, reported); client.IgnoreNotFound(ignoreConflict(err)) != nil {
		return fmt.Errorf("reporting what cluster %q waits for: %w", cluster.Name, err)
	}
	return nil
}

// recordBlockingWork records an event that names the first Work that blocks the removal, and the
// finalizers of this Work.
func (r *reconciler) recordBlockingWork(cluster *clusterv1alpha1.Cluster, works []workv1alpha1.Work) {
	for i := range works {
		if blocking := &works[i]; len(blocking.Finalizers) > 0 {
			r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, fmt.Errorf(
				"the removal of the cluster waits for its Works; Work %s/%s has finalizers %s: see its events, or remove the finalizers that no controller handles",
				blocking.Namespace, blocking.Name, strings.Join(blocking.Finalizers, ", ")))
			return
		}
	}
}

// maxNamedBindings is the maximum number of bindings that an event names.
const maxNamedBindings = 3

// recordBlockingBindings records an event that names the bindings that still target the cluster.
func (r *reconciler) recordBlockingBindings(cluster *clusterv1alpha1.Cluster, names []string) {
	if len(names) == 0 {
		return
	}
	r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, errors.New(
		"the removal of the cluster waits for bindings that are scheduled to it: "+strings.Join(names[:min(len(names), maxNamedBindings)], ", ")+
			"; remove the cluster from their spec.clusters, or delete the objects that they propagate"))
}
