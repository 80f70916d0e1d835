// Package judge answers "may the objects of this Work leave the member?" for all
// controllers of a control plane: it collects what explains the deletion of a Work and
// asks internal/domain/guard.
//
// Invariants: every verdict on a deletion comes from Judge.Decide. A read that fails
// explains nothing. Facts come from caches, except where a cache could only show that
// something is missing: then the API server is asked.
package judge

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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
)

// Options are what a Judge works with.
type Options struct {
	// Karmada reads from caches, Live asks the API server.
	Karmada, Live client.Reader
	// Cache shows the bindings and clusters as they change.
	Cache cache.Cache
	// API tells which kinds the control plane serves.
	API kinds.Discovery
	// Reports writes conditions of Works, Events the events of Works and Clusters.
	Reports *report.Works
	Events  *observe.Events
	// Registry is where the metric of held deletions is registered.
	Registry prometheus.Registerer
	Limits   guard.Limits
	// Epoch is read before any deletion is allowed; nil is a control plane without
	// epochs.
	Epoch ReadEpoch
	Now   func() time.Time
}

// Judge decides about deletions of Works. The controllers of one process share one: the
// limits are about all of them together.
type Judge struct {
	facts
	limits  guard.Limits
	counts  *counts
	held    *held
	reports *report.Works
	events  *observe.Events
	cache   cache.Cache
	now     func() time.Time
	// epoch is nil where there are no epochs.
	epoch ReadEpoch

	watching  sync.Once
	watchFail error
}

// New returns a Judge that has seen nothing.
func New(o Options) (*Judge, error) {
	stopped, err := newHeld(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Judge{
		facts:  facts{karmada: o.Karmada, live: o.Live, api: o.API, changes: newChanges(o.Now), outages: newOutages(o.Now), proofs: newProofs(), now: o.Now},
		limits: o.Limits, counts: newCounts(), held: stopped, reports: o.Reports, events: o.Events, cache: o.Cache, now: o.Now, epoch: o.Epoch,
	}, nil
}

// Watch begins to follow the changes of bindings and clusters. Later calls do nothing.
func (j *Judge) Watch(ctx context.Context) error {
	j.watching.Do(func() { j.watchFail = errors.Join(j.changes.watch(ctx, j.cache), j.outages.watch(ctx, j.cache)) })
	return j.watchFail
}

// Ruling is a verdict and what it rests on.
type Ruling struct {
	Verdict guard.Verdict
	// Reason says why the deletion is held.
	Reason guard.Reason
	Facts  guard.Facts
	// After is when to decide again, if the deletion waits for others to be counted.
	After time.Duration
	// losses are what all clusters lose without an explanation.
	losses losses
	// epoch is that of the control plane in which was decided.
	epoch epoch.Epoch
}

// Permission is what allows an agent to delete the objects of a Work in the epoch of
// the ruling.
func (r Ruling) Permission(of *workv1alpha1.Work) string { return r.epoch.Permission(of) }

// Decide returns the verdict on the deletion of a Work. Every deletion of objects in a
// member is asked for here.
//
// While the cluster is out of reach nothing can be deleted there, and what was decided
// about it may change. Then only what needs no count and no request is decided, and the
// verdict may be Prove: to be asked again when the cluster is back.
func (j *Judge) Decide(ctx context.Context, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, reachable bool) (Ruling, error) {
	ruling := Ruling{Verdict: guard.Hold}
	var err error
	if ruling.Facts, err = j.collect(ctx, cluster, of); err != nil {
		return ruling, err
	}
	if ruling.Facts.Owner == guard.Wants {
		if ruling.Facts, err = j.confirm(ctx, cluster, of, ruling.Facts); err != nil {
			return ruling, err
		}
	}
	if err = j.noteEpoch(ctx, &ruling); err != nil {
		return ruling, err
	}
	ruling.Facts.Decided = ruling.epoch.Permits(of) || j.counts.isSettled(of)
	var scale guard.Scale
	if reachable && ruling.Facts.Owner == guard.Drops && guard.Open(ruling.Facts) {
		if ruling.After = j.gathering(of, ruling.Facts); ruling.After > 0 {
			return ruling, nil
		}
		if scale, ruling.losses, err = j.scale(ctx, cluster); err != nil {
			return ruling, err
		}
	}
	ruling.Verdict, ruling.Reason = guard.Decide(ruling.Facts, scale, j.limits)
	if ruling.Verdict == guard.Prove && reachable {
		ruling.Facts.Template = j.prove(ctx, of)
		ruling.Verdict, ruling.Reason = guard.Decide(ruling.Facts, scale, j.limits)
	}
	return ruling, nil
}

// gathered is how long the deletions that one change of a Cluster causes take to begin.
const gathered = 5 * time.Second

// gathering returns how long to wait until the other deletions that the same change of
// the Cluster caused can be counted.
func (j *Judge) gathering(of *workv1alpha1.Work, facts guard.Facts) time.Duration {
	if !facts.Unmatched || facts.Restored || facts.Confirmed || facts.Decided {
		return 0
	}
	return max(0, of.DeletionTimestamp.Add(gathered).Sub(j.now()))
}

// CountHeld counts a deletion that is held after the verdict, until it is settled: what the
// member holds of the Work cannot be read.
func (j *Judge) CountHeld(cluster string, of *workv1alpha1.Work, reason string) {
	j.held.add(cluster, client.ObjectKeyFromObject(of), reason)
}

// Settle notes that the objects of a Work were deleted or are about to be, or that the
// Work was released with its objects. Later calls for the same Work do nothing.
func (j *Judge) Settle(cluster string, of *workv1alpha1.Work, ruling Ruling) {
	j.held.remove(client.ObjectKeyFromObject(of))
	j.counts.settle(cluster, of, ruling, j.now())
}

// Forget drops what is remembered of a Work that is gone.
func (j *Judge) Forget(of types.NamespacedName) {
	j.held.remove(of)
	j.counts.forgetWork(of)
}

// ForgetCluster drops what is remembered of a cluster that is gone.
func (j *Judge) ForgetCluster(name string) {
	j.held.removeCluster(name)
	j.counts.forgetCluster(name)
	j.outages.forget(name)
}

// Reconsider makes the next deletion that is held in a cluster an event again, because
// the cluster changed.
func (j *Judge) Reconsider(cluster string) { j.counts.setAnnounced(cluster, "") }

// reading wraps an error of a read that should have explained a deletion.
func reading(what string, of *workv1alpha1.Work, err error) error {
	return fmt.Errorf("reading %s to explain the deletion of Work %s/%s: %w", what, of.Namespace, of.Name, err)
}
