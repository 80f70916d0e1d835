// Package deletionguard answers "may the objects of this Work be deleted in the member?" for all
// controllers of a control plane. It collects the evidence for the deletion of a Work and passes
// the evidence to internal/domain/guard, which decides. A deletion is unexplained if no fact in its
// evidence shows why the objects should be deleted.
//
// Invariants: every decision on a deletion comes from Guard.Decide. A read that fails is no
// evidence. Evidence comes from caches. If a cache can only show that an object is missing, the
// package asks the API server.
package deletionguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/statuswriter"
)

// Options are the dependencies and limits of a Guard.
type Options struct {
	// Karmada reads from caches. APIReader reads from the API server.
	Karmada, APIReader client.Reader
	// Cache provides the watches of bindings and clusters.
	Cache cache.Cache
	// Discovery is the discovery of the control plane.
	Discovery kinds.Discovery
	// Reports writes the conditions of Works. Events writes the events of Works and Clusters.
	Reports *statuswriter.Writer
	Events  *loop.Events
	// Registry receives the metric of held deletions.
	Registry prometheus.Registerer
	Limits   guard.Limits
	// ReadEpoch is called for each decision. It is nil for a control plane without epochs.
	ReadEpoch EpochReader
	Now       func() time.Time
}

// Guard is the deletion guard for Works. The controllers of one process share one Guard, because
// its limits apply to the deletions of all controllers together.
type Guard struct {
	evidenceCollector
	limits  guard.Limits
	counts  *deletionCounts
	held    *heldDeletions
	reports *statuswriter.Writer
	events  *loop.Events
	cache   cache.Cache
	now     func() time.Time
	// readEpoch is nil for a control plane without epochs.
	readEpoch EpochReader

	watchOnce sync.Once
	watchErr  error
}

// New returns a Guard without any recorded deletions.
func New(o Options) (*Guard, error) {
	stopped, err := newHeldDeletions(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Guard{
		evidenceCollector: evidenceCollector{karmadaCache: o.Karmada, apiReader: o.APIReader, discovery: o.Discovery, changes: newChangeTracker(o.Now), outages: newOutageTracker(o.Now), proofs: newProofCache(), now: o.Now},
		limits:            o.Limits, counts: newDeletionCounts(), held: stopped, reports: o.Reports, events: o.Events, cache: o.Cache, now: o.Now, readEpoch: o.ReadEpoch,
	}, nil
}

// Watch starts the watches of bindings and clusters. Later calls do nothing.
func (g *Guard) Watch(ctx context.Context) error {
	g.watchOnce.Do(func() { g.watchErr = errors.Join(g.changes.watch(ctx, g.cache), g.outages.watch(ctx, g.cache)) })
	return g.watchErr
}

// Decision is the verdict on a deletion and the evidence for it.
type Decision struct {
	Verdict guard.Verdict
	// Reason says why the deletion is held.
	Reason   guard.Reason
	Evidence guard.Facts
	// RetryAfter is the delay before the next decision if other deletions must be counted first,
	// else 0.
	RetryAfter time.Duration
	// losses are the unexplained deletions of all clusters.
	losses clusterLosses
	// epoch is the epoch of the control plane at the time of the decision.
	epoch epoch.Epoch
}

// Permission returns the annotation value that allows an agent to delete the objects of a Work
// in the epoch of the decision.
func (d Decision) Permission(karmadaWork *workv1alpha1.Work) string {
	return d.epoch.PermissionValue(karmadaWork)
}

// Decide returns the decision on the deletion of a Work. Every deletion of objects in a member
// needs a decision.
//
// If the cluster is unreachable, nothing can be deleted there, and the evidence may change before
// the cluster is reachable again. Decide then neither counts deletions nor sends requests. It may
// return the verdict ReadTemplate. The caller must then call Decide again when the cluster is
// reachable.
func (g *Guard) Decide(ctx context.Context, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, reachable bool) (Decision, error) {
	decision := Decision{Verdict: guard.Hold}
	var err error
	if decision.Evidence, err = g.collectEvidence(ctx, cluster, karmadaWork); err != nil {
		return decision, err
	}
	if decision.Evidence.Owner == guard.OwnerRequiresWork {
		if decision.Evidence, err = g.confirmWanted(ctx, cluster, karmadaWork, decision.Evidence); err != nil {
			return decision, err
		}
	}
	if err = g.recordEpoch(ctx, &decision); err != nil {
		return decision, err
	}
	decision.Evidence.AlreadyAllowed = decision.epoch.Permits(karmadaWork) || g.counts.isSettled(karmadaWork)
	var scale guard.Bursts
	if reachable && decision.Evidence.Owner == guard.OwnerDropsWork && guard.IsUnexplained(decision.Evidence) {
		if decision.RetryAfter = g.gatherDelay(karmadaWork, decision.Evidence); decision.RetryAfter > 0 {
			return decision, nil
		}
		if scale, decision.losses, err = g.measureScale(ctx, cluster); err != nil {
			return decision, err
		}
	}
	decision.Verdict, decision.Reason = guard.Decide(decision.Evidence, scale, g.limits)
	if decision.Verdict == guard.ReadTemplate && reachable {
		decision.Evidence.Template = g.proveTemplate(ctx, karmadaWork)
		decision.Verdict, decision.Reason = guard.Decide(decision.Evidence, scale, g.limits)
	}
	return decision, nil
}

// gatherPeriod is the maximum expected time between the first and the last deletion that one change
// of a Cluster causes.
const gatherPeriod = 5 * time.Second

// gatherDelay returns how long to wait until all deletions that the same change of the Cluster
// caused can be counted.
func (g *Guard) gatherDelay(karmadaWork *workv1alpha1.Work, facts guard.Facts) time.Duration {
	if !facts.Unmatched || facts.RestoreUnconfirmed || facts.Confirmed || facts.AlreadyAllowed {
		return 0
	}
	return max(0, karmadaWork.DeletionTimestamp.Add(gatherPeriod).Sub(g.now()))
}

// CountHeld adds a Work to the metric of held deletions. It is for a Work whose deletion was
// decided, but whose objects cannot be read in the member. MarkSettled removes the Work from the
// metric.
func (g *Guard) CountHeld(cluster string, karmadaWork *workv1alpha1.Work, reason string) {
	g.held.add(cluster, client.ObjectKeyFromObject(karmadaWork), reason)
}

// MarkSettled records that a Work needs no further decision: its objects were deleted or are about
// to be deleted, or the Work and its objects were released. Later calls for the same Work do
// nothing.
func (g *Guard) MarkSettled(cluster string, karmadaWork *workv1alpha1.Work, decision Decision) {
	g.held.remove(client.ObjectKeyFromObject(karmadaWork))
	g.counts.markSettled(cluster, karmadaWork, decision, g.now())
}

// StopTrackingWork stops tracking a Work that no longer exists.
func (g *Guard) StopTrackingWork(key types.NamespacedName) {
	g.held.remove(key)
	g.counts.removeWork(key)
}

// StopTrackingCluster stops tracking a cluster that no longer exists.
func (g *Guard) StopTrackingCluster(name string) {
	g.held.removeCluster(name)
	g.counts.removeCluster(name)
	g.outages.removeCluster(name)
}

// AllowHeldEventAgain lets the next held deletion in a cluster record an event again, even for the
// same reason. Callers call it when the cluster changed.
func (g *Guard) AllowHeldEventAgain(cluster string) { g.counts.swapAnnouncedReason(cluster, "") }

// readError wraps the error of a read that was needed to explain a deletion.
func readError(subject string, karmadaWork *workv1alpha1.Work, err error) error {
	return fmt.Errorf("reading %s to explain the deletion of Work %s/%s: %w", subject, karmadaWork.Namespace, karmadaWork.Name, err)
}
