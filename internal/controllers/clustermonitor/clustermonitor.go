// Package clustermonitor reads the Leases and conditions of pull mode clusters, and sets the
// Ready condition of a cluster without heartbeats to Unknown.
//
// It uses only the time at which this process observed a change, and never a time that a member
// reports. A process that has just started, or that could not read the clusters for a while, gives
// every cluster the full grace period.
package clustermonitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "cluster-monitor"

// Options are the settings that operators may change.
type Options struct {
	// Period is the time between two checks of all clusters.
	Period time.Duration
	// Grace is how long a cluster may send no heartbeat.
	Grace domain.GracePeriods
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Period: 5 * time.Second, Grace: domain.DefaultGracePeriods()}
}

type monitor struct {
	options Options
	karmada client.Client
	// apiReader reads Leases from the API server, because one list in each check costs less than a
	// watch of every renewal.
	apiReader client.Reader
	events    *loop.Events
	now       func() time.Time

	// heartbeats contains the last heartbeat of each cluster, by the UID of the Cluster. A Cluster
	// that is created again has another UID.
	heartbeats map[types.UID]domain.HeartbeatRecord
	// lastCheck is the time of the last successful check.
	lastCheck time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	return mgr.Add(&monitor{
		options: o, karmada: mgr.GetClient(), apiReader: mgr.GetAPIReader(), now: time.Now, heartbeats: map[types.UID]domain.HeartbeatRecord{},
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges),
	})
}

// Start implements manager.Runnable.
func (m *monitor) Start(ctx context.Context) error {
	ticker := time.NewTicker(m.options.Period)
	defer ticker.Stop()
	for {
		if err := m.markSilentClusters(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot check the heartbeats of clusters", "controller", Name, "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// markSilentClusters sets the Ready condition of all clusters whose last heartbeat is too old to
// Unknown.
func (m *monitor) markSilentClusters(ctx context.Context) error {
	clusters, err := m.pullClusters(ctx)
	if err != nil {
		return err
	}
	renewTimes, err := m.renewTimes(ctx, clusters)
	if err != nil {
		return err
	}
	now := m.now()
	// All clusters get a new grace period if the monitor could not read them for a while: in that
	// time the clusters may have been unable to report too.
	if now.Sub(m.lastCheck) > 2*m.options.Period {
		clear(m.heartbeats)
	}
	m.lastCheck = now
	var failures []error
	heartbeats := make(map[types.UID]domain.HeartbeatRecord, len(clusters))
	for _, cluster := range clusters {
		heartbeat := m.recordHeartbeat(cluster, renewTimes[cluster.Name], now)
		heartbeats[cluster.UID] = heartbeat
		failures = append(failures, m.markIfSilent(ctx, cluster, heartbeat, now))
	}
	m.heartbeats = heartbeats
	return errors.Join(failures...)
}

// pullClusters returns the pull mode clusters.
func (m *monitor) pullClusters(ctx context.Context) ([]*clusterv1alpha1.Cluster, error) {
	all := &clusterv1alpha1.ClusterList{}
	if err := m.karmada.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var clusters []*clusterv1alpha1.Cluster
	for i := range all.Items {
		if all.Items[i].Spec.SyncMode == clusterv1alpha1.Pull {
			clusters = append(clusters, &all.Items[i])
		}
	}
	return clusters, nil
}

// renewTimes returns the renew time of the Lease of each cluster.
func (m *monitor) renewTimes(ctx context.Context, clusters []*clusterv1alpha1.Cluster) (map[string]*metav1.MicroTime, error) {
	if len(clusters) == 0 {
		return nil, nil
	}
	leases := &coordinationv1.LeaseList{}
	if err := m.apiReader.List(ctx, leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("listing leases of clusters: %w", err)
	}
	times := make(map[string]*metav1.MicroTime, len(leases.Items))
	for i := range leases.Items {
		times[leases.Items[i].Name] = leases.Items[i].Spec.RenewTime
	}
	return times, nil
}

func (m *monitor) recordHeartbeat(cluster *clusterv1alpha1.Cluster, renewed *metav1.MicroTime, now time.Time) domain.HeartbeatRecord {
	signs := domain.Heartbeat{LeaseRenewed: renewed}
	if ready := readyConditionOf(cluster); ready != nil {
		signs.Ready = ready.DeepCopy()
	}
	if previous, ok := m.heartbeats[cluster.UID]; ok {
		return domain.RecordHeartbeat(&previous, signs, now)
	}
	return domain.RecordHeartbeat(nil, signs, now)
}

// markIfSilent sets the Ready condition of a cluster to Unknown if its last heartbeat is too
// old.
func (m *monitor) markIfSilent(ctx context.Context, cluster *clusterv1alpha1.Cluster, heartbeat domain.HeartbeatRecord,
	now time.Time) error {
	silence := domain.MissedHeartbeatCondition(heartbeat, readyConditionOf(cluster), m.options.Grace, cluster.Generation, now)
	if silence == nil {
		return nil
	}
	updated := cluster.DeepCopy()
	conditions.Set(&updated.Status.Conditions, *silence)
	conditions.Remove(&updated.Status.Conditions, clusterv1alpha1.ClusterConditionResponding)
	if _, err := patch.Status(ctx, m.karmada, cluster, updated); err != nil {
		if apierrors.IsConflict(err) {
			// The conflict is ignored, because it means that the cluster has just reported.
			return nil
		}
		return client.IgnoreNotFound(err)
	}
	m.events.RecordFailure(updated, silence.Reason, errors.New(silence.Message))
	return nil
}

func readyConditionOf(cluster *clusterv1alpha1.Cluster) *metav1.Condition {
	return conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
