package judge

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

// outages remembers when clusters were out of reach. A process that has just started
// knows of those that last; then less is explained and more is held.
type outages struct {
	now func() time.Time

	mu       sync.Mutex
	clusters map[string]guard.Outages
}

func newOutages(now func() time.Time) *outages {
	return &outages{now: now, clusters: map[string]guard.Outages{}}
}

// watch follows the condition Ready of clusters.
func (o *outages) watch(ctx context.Context, from cache.Cache) error {
	informer, err := from.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	note := func(obj any) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
			o.note(cluster)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, after any) { note(after) },
	}); err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	return nil
}

// note remembers whether a cluster is ready.
func (o *outages) note(cluster *clusterv1alpha1.Cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clusters[cluster.Name] = o.with(cluster)
}

// cover reports whether the cluster was out of reach at that time. The watch may be behind
// what is known of the cluster now.
func (o *outages) cover(cluster *clusterv1alpha1.Cluster, at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.with(cluster).Cover(at)
}

// with returns the outages of a cluster with what its condition says; o.mu is held.
func (o *outages) with(cluster *clusterv1alpha1.Cluster) guard.Outages {
	known := o.clusters[cluster.Name]
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		return known
	}
	return known.Observe(ready.Status == metav1.ConditionTrue, ready.LastTransitionTime.Time, o.now())
}

// forget drops what is remembered of a cluster that is gone.
func (o *outages) forget(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clusters, cluster)
}
