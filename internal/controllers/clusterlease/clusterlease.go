// Package clusterlease answers "does the agent of a cluster live?": it renews the
// Lease by which the control plane knows.
//
// The first healthy look at the cluster begins it, and it goes on when the cluster
// is not healthy later: that is said in a condition, by an agent that lives. It
// ends with the Cluster, whose Lease goes along, so nothing here makes a Lease of
// a Cluster that is gone.
package clusterlease

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Name is the name of the controller in logs.
const Name = "cluster-lease-controller"

// Options are what operators may tune.
type Options struct {
	// Duration is how long a Lease says that it is good for.
	Duration time.Duration
	// RenewFraction of the duration lies between two renewals.
	RenewFraction float64
}

// DefaultOptions renew every ten seconds.
func DefaultOptions() Options { return Options{Duration: 40 * time.Second, RenewFraction: 0.25} }

// Interval is the time between two renewals, a moment at least.
func (o Options) Interval() time.Duration {
	return max(time.Duration(float64(o.Duration)*o.RenewFraction), leastInterval)
}

const (
	leastInterval = 100 * time.Millisecond
	// retry is when a renewal that failed is tried again.
	retry = time.Second
)

// Keeper renews the Leases of the clusters that it was told of.
type Keeper struct {
	options Options
	// cached shows the Clusters that there are, and writes; live asks.
	cached client.Client
	live   client.Reader
	now    func() time.Time

	wake chan struct{}
	mu   sync.Mutex
	kept map[string]kept
}

// kept is a cluster whose Lease is renewed.
type kept struct {
	uid types.UID
	// lease is as it was written last; nil is not known.
	lease *coordinationv1.Lease
}

// New makes a Keeper of no Lease.
func New(cached client.Client, live client.Reader, o Options) *Keeper {
	return &Keeper{options: o, cached: cached, live: live, now: time.Now, wake: make(chan struct{}, 1), kept: map[string]kept{}}
}

// Begin renews the Lease of a cluster from now on. It may be called again and
// again, and returns at once.
func (k *Keeper) Begin(_ context.Context, cluster *clusterv1alpha1.Cluster) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[cluster.Name].uid == cluster.UID {
		return
	}
	k.kept[cluster.Name] = kept{uid: cluster.UID}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	timer := time.NewTimer(k.options.Interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-k.wake:
		}
		timer.Reset(k.renewAll(ctx))
	}
}

// renewAll renews what is kept and returns when to do it again.
func (k *Keeper) renewAll(ctx context.Context) time.Duration {
	next := k.options.Interval()
	// A renewal that takes longer than this is late for the next one.
	ctx, cancel := context.WithTimeout(ctx, next)
	defer cancel()
	k.mu.Lock()
	clusters := maps.Clone(k.kept)
	k.mu.Unlock()
	for name, of := range clusters {
		lease, err := k.renew(ctx, name, of)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Will be tried again", "controller", Name, "cluster", name, "cause", err)
			next = min(next, retry)
		}
		k.note(name, of, lease, err)
	}
	return next
}

// note keeps what was written, and lets go of a cluster that is gone.
func (k *Keeper) note(name string, of kept, lease *coordinationv1.Lease, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.kept[name].uid != of.uid:
	case err == nil && lease == nil:
		delete(k.kept, name)
	default:
		k.kept[name] = kept{uid: of.uid, lease: lease}
	}
}

// renew renews the Lease of a cluster and returns it; nil without an error is one
// of a Cluster that is gone.
func (k *Keeper) renew(ctx context.Context, name string, of kept) (*coordinationv1.Lease, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := k.cached.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if cluster.UID != of.uid {
		return nil, nil
	}
	stored := of.lease
	if stored == nil {
		stored = &coordinationv1.Lease{}
		err := k.live.Get(ctx, types.NamespacedName{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}, stored)
		if apierrors.IsNotFound(err) {
			return k.create(ctx, cluster)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the Lease of cluster %q: %w", name, err)
		}
	}
	renewed := k.describe(stored.DeepCopy(), cluster)
	if err := k.cached.Update(ctx, renewed); err != nil {
		return nil, fmt.Errorf("renewing the Lease of cluster %q: %w", name, err)
	}
	return renewed, nil
}

func (k *Keeper) create(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*coordinationv1.Lease, error) {
	lease := k.describe(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster.Name},
	}, cluster)
	if err := k.cached.Create(ctx, lease); err != nil {
		return nil, fmt.Errorf("creating the Lease of cluster %q: %w", cluster.Name, err)
	}
	return lease, nil
}

// describe makes a Lease say that the agent lives.
func (k *Keeper) describe(lease *coordinationv1.Lease, cluster *clusterv1alpha1.Cluster) *coordinationv1.Lease {
	now := metav1.NewMicroTime(k.now())
	lease.Spec.HolderIdentity = ptr.To(cluster.Name)
	// A Lease is good for whole seconds, one at least.
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(max(1, min(k.options.Duration/time.Second, maxSeconds))))
	lease.Spec.RenewTime = &now
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
	}}
	return lease
}

// maxSeconds is more than any Lease should be good for, and fits into one.
const maxSeconds = 1 << 30
