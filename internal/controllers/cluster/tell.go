package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// patience is how long a removal takes without anybody being told what it waits
// for: usually it is over by then.
const patience = 30 * time.Second

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

// overdue tells that somebody should know what the removal of a cluster waits for.
func (r *reconciler) overdue(cluster *clusterv1alpha1.Cluster) bool {
	return r.now().Sub(cluster.DeletionTimestamp.Time) >= patience
}

// tellWorks names a Work that does not go, and what holds it.
func (r *reconciler) tellWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if !r.overdue(cluster) {
		return nil
	}
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Works of cluster %q: %w", cluster.Name, err)
	}
	// The first by name, so that the same is told the same.
	slices.SortFunc(works.Items, func(a, b workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	for i := range works.Items {
		if held := &works.Items[i]; len(held.Finalizers) > 0 {
			r.events.Failed(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, fmt.Errorf(
				"the cluster goes when its Works are gone; Work %s/%s is held by its finalizers %s: see its events, or remove what nobody serves any more",
				held.Namespace, held.Name, strings.Join(held.Finalizers, ", ")))
			return nil
		}
	}
	return nil
}

// shown is how many bindings are named of those for which a removal waits.
const shown = 3

// tellBindings names bindings that nobody schedules elsewhere.
func (r *reconciler) tellBindings(cluster *clusterv1alpha1.Cluster, targeting []binding.Object) {
	if !r.overdue(cluster) {
		return
	}
	var names []string
	for _, bound := range targeting {
		name := bound.GetName()
		if bound.GetNamespace() != "" {
			name = bound.GetNamespace() + "/" + name
		}
		if scheduler := bound.BindingSpec().SchedulerName; scheduler != "" {
			name += " (scheduler " + scheduler + ")"
		}
		names = append(names, name)
	}
	// The first by name, so that the same is told the same.
	slices.Sort(names)
	names = names[:min(len(names), shown)]
	r.events.Failed(cluster, clusterv1alpha1.EventReasonClusterRemovalWaits, errors.New(
		"the cluster goes when no binding is scheduled to it; some still are, and their scheduler does not change that: "+
			strings.Join(names, ", ")+"; take the cluster out of their spec.clusters, or delete what they propagate"))
}
