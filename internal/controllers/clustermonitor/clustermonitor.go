// Package clustermonitor answers "which clusters that report by themselves have
// fallen silent?": it listens to the Leases and conditions of pull mode clusters,
// and says Unknown of one that shows no sign of life.
//
// What counts is when this process noticed a change, never what time a member says
// it is. A process that has just begun to listen, or could not listen for a while,
// gives every cluster its full grace: silence is proved by listening only.
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
)

// Name is the name of the controller in logs and events.
const Name = "cluster-monitor"

// Options are what operators may tune.
type Options struct {
	// Period is how often all clusters are looked at.
	Period time.Duration
	// Grace is how long a cluster may be silent.
	Grace domain.Grace
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options { return Options{Period: 5 * time.Second, Grace: domain.DefaultGrace()} }

type monitor struct {
	options Options
	karmada client.Client
	// live reads Leases: one list at each look is cheaper than a watch that tells of
	// each renewal.
	live   client.Reader
	events *observe.Events
	now    func() time.Time

	// lives are by the ids of clusters: a new one of an old name has not been silent.
	lives map[types.UID]domain.Life
	// listened is when the last look succeeded.
	listened time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	return mgr.Add(&monitor{
		options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now, lives: map[types.UID]domain.Life{},
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	})
}

// Start implements manager.Runnable.
func (m *monitor) Start(ctx context.Context) error {
	ticker := time.NewTicker(m.options.Period)
	defer ticker.Stop()
	for {
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Clusters will be looked at again", "controller", Name, "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look listens to all clusters once.
func (m *monitor) look(ctx context.Context) error {
	clusters, err := m.reporting(ctx)
	if err != nil {
		return err
	}
	renewals, err := m.renewals(ctx, clusters)
	if err != nil {
		return err
	}
	now := m.now()
	// What could not be heard is not silence: the cluster may have had nobody to
	// report to.
	if now.Sub(m.listened) > 2*m.options.Period {
		clear(m.lives)
	}
	m.listened = now
	var failures []error
	heard := make(map[types.UID]domain.Life, len(clusters))
	for _, cluster := range clusters {
		life := m.hear(cluster, renewals[cluster.Name], now)
		heard[cluster.UID] = life
		failures = append(failures, m.judge(ctx, cluster, life, now))
	}
	m.lives = heard
	return errors.Join(failures...)
}

// reporting are the clusters that report by themselves.
func (m *monitor) reporting(ctx context.Context) ([]*clusterv1alpha1.Cluster, error) {
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

// renewals are the times in the Leases, by cluster.
func (m *monitor) renewals(ctx context.Context, clusters []*clusterv1alpha1.Cluster) (map[string]*metav1.MicroTime, error) {
	if len(clusters) == 0 {
		return nil, nil
	}
	leases := &coordinationv1.LeaseList{}
	if err := m.live.List(ctx, leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("listing leases of clusters: %w", err)
	}
	times := make(map[string]*metav1.MicroTime, len(leases.Items))
	for i := range leases.Items {
		times[leases.Items[i].Name] = leases.Items[i].Spec.RenewTime
	}
	return times, nil
}

func (m *monitor) hear(cluster *clusterv1alpha1.Cluster, renewed *metav1.MicroTime, now time.Time) domain.Life {
	signs := domain.Signs{Renewed: renewed}
	if ready := readyOf(cluster); ready != nil {
		signs.Ready = ready.DeepCopy()
	}
	if before, ok := m.lives[cluster.UID]; ok {
		return domain.Hear(&before, signs, now)
	}
	return domain.Hear(nil, signs, now)
}

// judge says Unknown of a cluster that was silent for too long.
func (m *monitor) judge(ctx context.Context, cluster *clusterv1alpha1.Cluster, life domain.Life, now time.Time) error {
	silence := domain.Silence(life, readyOf(cluster), m.options.Grace, cluster.Generation, now)
	if silence == nil {
		return nil
	}
	marked := cluster.DeepCopy()
	conditions.Set(&marked.Status.Conditions, *silence)
	conditions.Remove(&marked.Status.Conditions, clusterv1alpha1.ClusterConditionAnswering)
	if _, err := patch.Status(ctx, m.karmada, cluster, marked); err != nil {
		if apierrors.IsConflict(err) {
			// It has just reported.
			return nil
		}
		return client.IgnoreNotFound(err)
	}
	m.events.Failed(marked, silence.Reason, errors.New(silence.Message))
	return nil
}

func readyOf(cluster *clusterv1alpha1.Cluster) *metav1.Condition {
	return conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
