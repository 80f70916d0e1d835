package estimators

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop"
)

// PoolWatcher closes the connections of a pool when their Clusters are deleted, or when the Services
// with their addresses change. It implements manager.Runnable and closes the pool at its end.
type PoolWatcher struct {
	Pool *Pool
	// Clusters and Services are caches with the Clusters and with the Services of the namespace of
	// the pool.
	Clusters, Services cache.Informers
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. A pool that receives no request has
// no connections.
func (*PoolWatcher) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *PoolWatcher) Start(ctx context.Context) error {
	defer w.Pool.Close()
	if err := w.register(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// register registers the handlers with the caches.
func (w *PoolWatcher) register(ctx context.Context) error {
	onCluster := loop.Handlers[*clusterv1alpha1.Cluster]{Deleted: w.Pool.clusterDeleted}
	onService := loop.Handlers[*corev1.Service]{
		Added: func(added *corev1.Service, _ bool) { w.Pool.serviceChanged(added) }, Updated: w.Pool.serviceUpdated,
		Deleted: w.Pool.serviceChanged,
	}
	if err := watch(ctx, w.Clusters, &clusterv1alpha1.Cluster{}, onCluster); err != nil {
		return err
	}
	return watch(ctx, w.Services, &corev1.Service{}, onService)
}

func watch(ctx context.Context, informers cache.Informers, object client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %T for the addresses of estimators: %w", object, err)
	}
	if _, err := informer.AddEventHandler(handlers); err != nil {
		return fmt.Errorf("watching %T for the addresses of estimators: %w", object, err)
	}
	return nil
}

func (p *Pool) clusterDeleted(gone *clusterv1alpha1.Cluster) {
	p.mu.Lock()
	e := p.clusters[gone.Name]
	delete(p.clusters, gone.Name)
	p.mu.Unlock()
	if e != nil {
		e.close()
	}
}

func (p *Pool) serviceUpdated(older, newer *corev1.Service) {
	if !equality.Semantic.DeepEqual(older.Spec, newer.Spec) {
		p.serviceChanged(newer)
	}
}

// serviceChanged closes the connection to the estimator whose address is in the Service. The next
// request opens a connection to the new address.
func (p *Pool) serviceChanged(service *corev1.Service) {
	cluster, isEstimator := strings.CutPrefix(service.Name, p.options.Prefix+"-")
	if !isEstimator || service.Namespace != p.options.Namespace {
		return
	}
	p.mu.Lock()
	e := p.clusters[cluster]
	p.mu.Unlock()
	if e != nil {
		e.reset()
	}
}
