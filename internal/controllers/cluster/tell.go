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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
)

// patience is how long a removal takes before an event says what it waits for.
const patience = domain.TakeOutAfter

// tellTaints tells which taints the health of a cluster changed.
func (r *reconciler) tellTaints(before, after *clusterv1alpha1.Cluster) {
	r.events.Recovered(after, clusterv1alpha1.EventReasonTaintClusterFailed)
	if equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		return
	}
	r.events.Decided(after, clusterv1alpha1.EventReasonTaintClusterSucceed,
		"Health: taints are now [%s], before [%s]", listed(after.Spec.Taints), listed(before.Spec.Taints))
}

func listed(taints []corev1.Taint) string {
	texts := make([]string, 0, len(taints))
	for i := range taints {
		texts = append(texts, taints[i].ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// overdue reports whether users have to learn what the removal of a cluster waits for.
func (r *reconciler) overdue(cluster *clusterv1alpha1.Cluster) bool {
	return r.now().Sub(cluster.DeletionTimestamp.Time) >= patience
}

// tellRemains says, in the conditions of a cluster that leaves and when it takes long
// in an event, what the removal waits for. Lists are sorted, so that the same is said
// the same.
func (r *reconciler) tellRemains(ctx context.Context, cluster *clusterv1alpha1.Cluster, worksGone bool, targeting []binding.Object) error {
	remains := domain.Remains{WorksGone: worksGone}
	for _, bound := range targeting {
		remains.Bindings = append(remains.Bindings, nameOf(bound))
	}
	slices.Sort(remains.Bindings)
	works := &workv1alpha1.WorkList{}
	if !worksGone {
		if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing Works of cluster %q: %w", cluster.Name, err)
		}
		slices.SortFunc(works.Items, func(a, b workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	}
	for i := range works.Items {
		remains.Works = append(remains.Works, works.Items[i].Namespace+"/"+works.Items[i].Name)
	}
	if r.overdue(cluster) {
		r.tellWorks(cluster, works.Items)
		if worksGone {
			r.tellBindings(cluster, remains.Bindings)
		}
	}
	return r.reportLeaving(ctx, cluster, remains)
}

// nameOf is the name of a binding with its namespace, if it has one, and with its
// scheduler, if it names one.
func nameOf(bound binding.Object) string {
	name := bound.GetName()
	if bound.GetNamespace() != "" {
		name = bound.GetNamespace() + "/" + name
	}
	if scheduler := bound.BindingSpec().SchedulerName; scheduler != "" {
		name += " (scheduler " + scheduler + ")"
	}
	return name
}

// reportLeaving writes the conditions of a cluster that leaves.
func (r *reconciler) reportLeaving(ctx context.Context, cluster *clusterv1alpha1.Cluster, remains domain.Remains) error {
	reported := cluster.DeepCopy()
	domain.ReportLeaving(reported, remains, r.now())
	if _, err := patch.Status(ctx, r.karmada, cluster, reported); client.IgnoreNotFound(quiet(err)) != nil {
		return fmt.Errorf("reporting what cluster %q waits for: %w", cluster.Name, err)
	}
	return nil
}

// tellWorks names a Work that does not go, and what holds it.
func (r *reconciler) tellWorks(cluster *clusterv1alpha1.Cluster, works []workv1alpha1.Work) {
	for i := range works {
		if held := &works[i]; len(held.Finalizers) > 0 {
			r.events.Failed(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, fmt.Errorf(
				"the cluster goes when its Works are gone; Work %s/%s is held by its finalizers %s: see its events, or remove what nobody serves any more",
				held.Namespace, held.Name, strings.Join(held.Finalizers, ", ")))
			return
		}
	}
}

// shown is how many bindings are named of those for which a removal waits.
const shown = 3

// tellBindings names the bindings that still list the cluster.
func (r *reconciler) tellBindings(cluster *clusterv1alpha1.Cluster, names []string) {
	if len(names) == 0 {
		return
	}
	r.events.Failed(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, errors.New(
		"the cluster goes when no binding is scheduled to it; some still are: "+strings.Join(names[:min(len(names), shown)], ", ")+
			"; take the cluster out of their spec.clusters, or delete what they propagate"))
}
