// Package clusterlease renews the Lease that the control plane watches.
//
// The renewals start with the first healthy probe of the cluster. They continue if the cluster
// becomes unhealthy, because the agent still runs and reports the bad health in a condition. They
// end when the Cluster is deleted. The Lease is deleted together with the Cluster, so this package
// never creates a Lease for a deleted Cluster.
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

// Options are the settings that operators may change.
type Options struct {
	// Duration is how long a renewed Lease is valid.
	Duration time.Duration
	// RenewFraction is the interval between two renewals, as a fraction of Duration.
	RenewFraction float64
}

// DefaultOptions returns options with a renewal every 10 seconds.
func DefaultOptions() Options { return Options{Duration: 40 * time.Second, RenewFraction: 0.25} }

// Interval returns the interval between two renewals, which is at least 100 ms.
func (o Options) Interval() time.Duration {
	return max(time.Duration(float64(o.Duration)*o.RenewFraction), minInterval)
}

const (
	minInterval = 100 * time.Millisecond
	// retryInterval is the delay before a failed renewal is retried.
	retryInterval = time.Second
)

// Renewer renews the Leases of clusters.
type Renewer struct {
	options Options
	// karmada reads Clusters from a cache and writes to the API server. apiReader reads from the
	// API server.
	karmada   client.Client
	apiReader client.Reader
	now       func() time.Time

	wakeUp   chan struct{}
	mu       sync.Mutex
	renewals map[string]renewal
}

// renewal is the state of the renewals for one cluster.
type renewal struct {
	uid types.UID
	// lease is the Lease as last written, or nil if it is unknown.
	lease *coordinationv1.Lease
}

// New returns a Renewer that renews no Lease yet.
func New(karmada client.Client, apiReader client.Reader, o Options) *Renewer {
	return &Renewer{options: o, karmada: karmada, apiReader: apiReader, now: time.Now, wakeUp: make(chan struct{}, 1),
		renewals: map[string]renewal{}}
}

// StartRenewal starts the renewals of the Lease of a cluster. It may be called repeatedly and does
// not block.
func (r *Renewer) StartRenewal(_ context.Context, cluster *clusterv1alpha1.Cluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewals[cluster.Name].uid == cluster.UID {
		return
	}
	r.renewals[cluster.Name] = renewal{uid: cluster.UID}
	select {
	case r.wakeUp <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (r *Renewer) Start(ctx context.Context) error {
	timer := time.NewTimer(r.options.Interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-r.wakeUp:
		}
		timer.Reset(r.renewAll(ctx))
	}
}

// renewAll renews all Leases and returns the delay until the next renewals.
func (r *Renewer) renewAll(ctx context.Context) time.Duration {
	next := r.options.Interval()
	// The timeout is needed because a longer renewal would delay the next one.
	ctx, cancel := context.WithTimeout(ctx, next)
	defer cancel()
	r.mu.Lock()
	renewals := maps.Clone(r.renewals)
	r.mu.Unlock()
	for name, entry := range renewals {
		lease, err := r.renew(ctx, name, entry)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot renew the Lease of a cluster yet", "controller", Name, "cluster", name, "cause", err)
			next = min(next, retryInterval)
		}
		r.recordRenewal(name, entry, lease, err)
	}
	return next
}

// recordRenewal stores the written Lease, or stops the renewals for a deleted cluster.
func (r *Renewer) recordRenewal(name string, entry renewal, lease *coordinationv1.Lease, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.renewals[name].uid != entry.uid:
	case err == nil && lease == nil:
		delete(r.renewals, name)
	default:
		r.renewals[name] = renewal{uid: entry.uid, lease: lease}
	}
}

// renew renews the Lease of a cluster and returns it. It returns nil without an error if the
// Cluster is deleted.
func (r *Renewer) renew(ctx context.Context, name string, entry renewal) (*coordinationv1.Lease, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if cluster.UID != entry.uid {
		return nil, nil
	}
	stored := entry.lease
	if stored == nil {
		stored = &coordinationv1.Lease{}
		err := r.apiReader.Get(ctx, types.NamespacedName{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}, stored)
		if apierrors.IsNotFound(err) {
			return r.create(ctx, cluster)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the Lease of cluster %q: %w", name, err)
		}
	}
	renewed := r.setRenewed(stored.DeepCopy(), cluster)
	if err := r.karmada.Update(ctx, renewed); err != nil {
		return nil, fmt.Errorf("renewing the Lease of cluster %q: %w", name, err)
	}
	return renewed, nil
}

func (r *Renewer) create(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*coordinationv1.Lease, error) {
	lease := r.setRenewed(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster.Name},
	}, cluster)
	if err := r.karmada.Create(ctx, lease); err != nil {
		return nil, fmt.Errorf("creating the Lease of cluster %q: %w", cluster.Name, err)
	}
	return lease, nil
}

// setRenewed sets the spec and the owner of a renewed Lease.
func (r *Renewer) setRenewed(lease *coordinationv1.Lease, cluster *clusterv1alpha1.Cluster) *coordinationv1.Lease {
	now := metav1.NewMicroTime(r.now())
	lease.Spec.HolderIdentity = ptr.To(cluster.Name)
	// The API requires a duration of at least one second.
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(max(1, min(r.options.Duration/time.Second, maxDurationSeconds))))
	lease.Spec.RenewTime = &now
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
	}}
	return lease
}

// maxDurationSeconds is the maximum duration of a Lease. It prevents an overflow of the type of the
// field.
const maxDurationSeconds = 1 << 30
