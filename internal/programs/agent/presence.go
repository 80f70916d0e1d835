package agent

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// presence watches whether the agent still has its Cluster. An administrator who
// deletes it has decided, so the agent takes back what it applied, lets go and
// waits: whoever restarts it wants it registered again. A Cluster of its name that
// is another cluster ends it.
type presence struct {
	cache    cache.Cache
	name, id string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*presence) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *presence) Start(ctx context.Context) error {
	clusters, err := p.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the own Cluster: %w", err)
	}
	logger := klog.FromContext(ctx).WithValues("cluster", p.name)
	taken := make(chan error, 1)
	see := func(obj any) *clusterv1alpha1.Cluster {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok || cluster.Name != p.name {
			return nil
		}
		if err := foreign(cluster, p.id); err != nil {
			select {
			case taken <- err:
			default:
			}
		}
		return cluster
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { see(obj) },
		UpdateFunc: func(before, after any) {
			older, newer := see(before), see(after)
			if older != nil && newer != nil && older.DeletionTimestamp == nil && newer.DeletionTimestamp != nil {
				logger.Info("The Cluster is being deleted in the control plane: taking back what was applied")
			}
		},
		DeleteFunc: func(any) {
			logger.Info("The Cluster was deleted in the control plane: doing nothing from now on. Restart the agent to register the cluster again, or remove the agent")
		},
	}); err != nil {
		return fmt.Errorf("watching the own Cluster: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-taken:
		return err
	}
}
