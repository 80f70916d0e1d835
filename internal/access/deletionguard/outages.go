package deletionguard

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
)

// outageTracker holds the times at which clusters were unreachable. When the process starts, it
// knows only outages that still last, so at first the guard finds fewer explanations and holds more
// deletions.
type outageTracker struct {
	now func() time.Time

	mu       sync.Mutex
	clusters map[string]guard.Outages
}

func newOutageTracker(now func() time.Time) *outageTracker {
	return &outageTracker{now: now, clusters: map[string]guard.Outages{}}
}

// watch records the Ready condition of clusters.
func (o *outageTracker) watch(ctx context.Context, informers cache.Cache) error {
	informer, err := informers.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	record := func(obj any) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
			o.recordReadiness(cluster)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: record, UpdateFunc: func(_, after any) { record(after) },
	}); err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	return nil
}

// recordReadiness records whether a cluster is ready.
func (o *outageTracker) recordReadiness(cluster *clusterv1alpha1.Cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clusters[cluster.Name] = o.withCondition(cluster)
}

// wasUnreachableAt reports whether the cluster was unreachable at a time. It also uses the
// condition of the given Cluster, because the watch may not have delivered this condition yet.
func (o *outageTracker) wasUnreachableAt(cluster *clusterv1alpha1.Cluster, at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.withCondition(cluster).Contains(at)
}

// withCondition returns the recorded outages of a cluster, updated with the Ready condition of the
// given Cluster. The caller holds o.mu.
func (o *outageTracker) withCondition(cluster *clusterv1alpha1.Cluster) guard.Outages {
	recorded := o.clusters[cluster.Name]
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		return recorded
	}
	return recorded.Observe(ready.Status == metav1.ConditionTrue, ready.LastTransitionTime.Time, o.now())
}

// removeCluster stops tracking a cluster that no longer exists.
func (o *outageTracker) removeCluster(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clusters, cluster)
}
