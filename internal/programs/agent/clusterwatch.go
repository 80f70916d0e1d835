package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration/enroll"
)

const (
	// absenceTimeout is how long an agent retries after a request for its own Cluster returned
	// Forbidden or NotFound, because an API server that is starting may temporarily reject
	// requests.
	absenceTimeout     = 10 * time.Second
	absenceRetryPeriod = time.Second
	// returnBackoffBase and returnBackoffMax limit the exponential backoff while the agent waits for its
	// deleted Cluster. The maximum is long, because the Cluster probably does not return.
	returnBackoffBase = 2 * time.Second
	returnBackoffMax  = time.Minute
)

// errClusterDeleted is returned when the Cluster of a running agent was deleted.
var errClusterDeleted = errors.New("the Cluster was deleted")

// clusterWatch ends the controllers when the Cluster of the agent no longer exists. The applied
// objects are removed before that, because a finalizer keeps a deleted Cluster until they are
// gone. If another cluster replaces the Cluster with its own, clusterWatch ends the agent.
type clusterWatch struct {
	agent *agent
	cache cache.Cache
	id    string
	// checkRequests receives a value when a watch of the agent was forbidden.
	checkRequests chan struct{}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*clusterWatch) NeedLeaderElection() bool { return false }

// requestCheck makes Start check whether the Cluster still exists. It does not block.
func (c *clusterWatch) requestCheck() {
	select {
	case c.checkRequests <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (c *clusterWatch) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the Cluster of the agent: %w", err)
	}
	lost := make(chan error, 1)
	if _, err := clusters.AddEventHandler(c.eventHandler(ctx, lost)); err != nil {
		return fmt.Errorf("watching the Cluster of the agent: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-lost:
			return err
		case <-c.checkRequests:
		}
		if err := c.checkCluster(ctx); err != nil {
			return err
		}
	}
}

// eventHandler returns a handler that sends the reason to lost when the agent has no Cluster
// anymore.
func (c *clusterWatch) eventHandler(ctx context.Context, lost chan<- error) toolscache.ResourceEventHandler {
	name := c.agent.cluster.Name
	logger := klog.FromContext(ctx).WithValues("cluster", name)
	reportLost := func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	checkEvent := func(obj any) *clusterv1alpha1.Cluster {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok || cluster.Name != name {
			return nil
		}
		if err := verifyClusterID(cluster, c.id); err != nil {
			reportLost(err)
		}
		return cluster
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { checkEvent(obj) },
		UpdateFunc: func(before, after any) {
			older, newer := checkEvent(before), checkEvent(after)
			if older != nil && newer != nil && older.DeletionTimestamp == nil && newer.DeletionTimestamp != nil {
				logger.Info("The Cluster is being deleted in the control plane: removing the applied objects")
			}
		},
		DeleteFunc: func(any) { reportLost(errClusterDeleted) },
	}
}

// checkCluster reads the Cluster from the API server. If the requests return Forbidden or NotFound
// for absenceTimeout, it returns errClusterDeleted. It ignores other errors, for example that the
// API server is unavailable.
func (c *clusterWatch) checkCluster(ctx context.Context) error {
	timeout := time.After(absenceTimeout)
	for {
		cluster, err := c.agent.getCluster(ctx)
		switch {
		case err == nil:
			return verifyClusterID(cluster, c.id)
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timeout:
			return errClusterDeleted
		case <-time.After(absenceRetryPeriod):
		}
	}
}

// getCluster reads the Cluster from the control plane.
func (a *agent) getCluster(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	found := &clusterv1alpha1.Cluster{}
	return found, a.clusters.Get(ctx, types.NamespacedName{Name: a.cluster.Name}, found)
}

// awaitCluster waits until the Cluster exists again. The agent does not create the Cluster itself.
// awaitCluster returns an error if the Cluster now belongs to another cluster, and nil when ctx
// ends.
func (a *agent) awaitCluster(ctx context.Context, id string) (*clusterv1alpha1.Cluster, error) {
	logger := klog.FromContext(ctx).WithValues("cluster", a.cluster.Name)
	logger.Info("The Cluster was deleted from the control plane: waiting until it exists again", "remedy",
		enroll.ReregistrationAdvice(a.cluster.Name))
	for delay := returnBackoffBase; ; delay = min(2*delay, returnBackoffMax) {
		cluster, err := a.getCluster(ctx)
		if err == nil {
			if err := verifyClusterID(cluster, id); err != nil {
				return nil, err
			}
			logger.Info("The Cluster exists again: restarting the controllers")
			return cluster, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-a.karmada.currentIdentity().replaced:
			// New credentials indicate that the cluster was probably registered again.
			delay = returnBackoffBase
		case <-time.After(delay):
		}
	}
}
