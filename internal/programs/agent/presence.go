package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration/enroll"
)

const (
	// doubtLimit is how long an agent that is refused its own Cluster believes that
	// this passes: an API server that starts refuses what it allows a moment later.
	doubtLimit = 10 * time.Second
	doubtPause = time.Second
	// returnPause and returnLimit bound the pauses of an agent that waits for a
	// Cluster that is gone, most likely for good.
	returnPause = 2 * time.Second
	returnLimit = time.Minute
)

// errDismissed tells that the Cluster of a running agent is gone.
var errDismissed = errors.New("the Cluster is gone")

// presence watches whether the agent still has its Cluster. An administrator who
// deletes it has decided: what was applied has been taken back by then, and the
// controllers end. A Cluster of its name that is another cluster ends the agent.
type presence struct {
	agent *agent
	cache cache.Cache
	id    string
	// doubts says that the agent was refused something.
	doubts chan struct{}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*presence) NeedLeaderElection() bool { return false }

// doubt makes the agent look whether it still has its Cluster.
func (p *presence) doubt() {
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (p *presence) Start(ctx context.Context) error {
	clusters, err := p.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the own Cluster: %w", err)
	}
	lost := make(chan error, 1)
	if _, err := clusters.AddEventHandler(p.handler(ctx, lost)); err != nil {
		return fmt.Errorf("watching the own Cluster: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-lost:
			return err
		case <-p.doubts:
		}
		if err := p.check(ctx); err != nil {
			return err
		}
	}
}

// handler tells why the agent has lost its Cluster.
func (p *presence) handler(ctx context.Context, lost chan<- error) toolscache.ResourceEventHandler {
	name := p.agent.cluster.Name
	logger := klog.FromContext(ctx).WithValues("cluster", name)
	lose := func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	see := func(obj any) *clusterv1alpha1.Cluster {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok || cluster.Name != name {
			return nil
		}
		if err := foreign(cluster, p.id); err != nil {
			lose(err)
		}
		return cluster
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { see(obj) },
		UpdateFunc: func(before, after any) {
			older, newer := see(before), see(after)
			if older != nil && newer != nil && older.DeletionTimestamp == nil && newer.DeletionTimestamp != nil {
				logger.Info("The Cluster is being deleted in the control plane: taking back what was applied")
			}
		},
		DeleteFunc: func(any) { lose(errDismissed) },
	}
}

// check looks whether the agent that was refused something still has its Cluster.
// What it does not get to see for a while is taken for gone; an API server that does
// not answer says nothing.
func (p *presence) check(ctx context.Context) error {
	limit := time.After(doubtLimit)
	for {
		cluster, err := p.agent.stored(ctx)
		switch {
		case err == nil:
			return foreign(cluster, p.id)
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-limit:
			return errDismissed
		case <-time.After(doubtPause):
		}
	}
}

// stored is the Cluster as the control plane has it now.
func (a *agent) stored(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	found := &clusterv1alpha1.Cluster{}
	return found, a.clusters.Get(ctx, keyOf(a.cluster.Name), found)
}

// awaitReturn waits until the Cluster is there again, whoever makes it; the agent
// itself does not. It returns why the agent has no Cluster any more, and nothing when
// ctx ends.
func (a *agent) awaitReturn(ctx context.Context, id string) (*clusterv1alpha1.Cluster, error) {
	logger := klog.FromContext(ctx).WithValues("cluster", a.cluster.Name)
	logger.Info("The Cluster was removed from the control plane: doing nothing until it is there again", "remedy", enroll.Again(a.cluster.Name))
	for pause := returnPause; ; pause = min(2*pause, returnLimit) {
		cluster, err := a.stored(ctx)
		if err == nil {
			if err := foreign(cluster, id); err != nil {
				return nil, err
			}
			logger.Info("The Cluster is there again: beginning anew")
			return cluster, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-a.karmada.get().replaced:
			// Whoever gives it other credentials may have registered the cluster.
			pause = returnPause
		case <-time.After(pause):
		}
	}
}
