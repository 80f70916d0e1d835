// Package deletionguard decides for all controllers of a control plane whether the objects of a
// Work may be deleted in the member. It collects the evidence for the deletion of a Work and passes
// the evidence to internal/domain/guard, which decides.
//
// Invariants: every decision on a deletion comes from Guard.Decide. All evidence is in stored
// objects, so that a restart loses no explanation. A read that fails is no evidence. Evidence comes
// from caches. If a cache can only show that an object is missing, the package asks the API server.
package deletionguard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Options are the dependencies and limits of a Guard.
type Options struct {
	// Karmada reads from caches. APIReader reads from the API server.
	Karmada, APIReader client.Reader
	// Discovery is the discovery of the control plane.
	Discovery servedkinds.DiscoveryClient
	// Reports writes the conditions of Works. Events writes the events of Works and Clusters.
	Reports *loop.StatusWriter
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
	recent  *recentDeletions
	held    *heldDeletions
	reports *loop.StatusWriter
	events  *loop.Events
	// readEpoch is nil for a control plane without epochs.
	readEpoch EpochReader

	mu sync.Mutex
	// settledWorks are the Works that need no further decision, although the cache may still return
	// them.
	settledWorks map[types.NamespacedName]types.UID
}

// New returns a Guard without any recorded deletions.
func New(o Options) (*Guard, error) {
	held, err := newHeldDeletions(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Guard{
		evidenceCollector: evidenceCollector{karmadaCache: o.Karmada, apiReader: o.APIReader, discovery: o.Discovery, proofs: newProofCache(), now: o.Now},
		limits:            o.Limits, recent: newRecentDeletions(), held: held, reports: o.Reports, events: o.Events, readEpoch: o.ReadEpoch,
		settledWorks: map[types.NamespacedName]types.UID{},
	}, nil
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
	decision.Evidence.AlreadyAllowed = g.isAllowed(karmadaWork, decision.epoch)
	if decision.Evidence.ContainsUndecided, err = g.containsUndecided(ctx, karmadaWork, decision); err != nil {
		return decision, err
	}
	decision.Verdict, decision.Reason = guard.Decide(decision.Evidence, guard.Counts{}, g.limits)
	if decision.Verdict == guard.ReadTemplate && reachable {
		decision.Evidence.Template = g.proveTemplate(ctx, karmadaWork)
		decision.Verdict, decision.Reason = guard.Decide(decision.Evidence, guard.Counts{}, g.limits)
	}
	if decision.Verdict == guard.Delete && reachable {
		var counts guard.Counts
		counts, decision.RetryAfter = g.countDeletion(cluster.Name, karmadaWork, decision.Evidence)
		decision.Verdict, decision.Reason = guard.Decide(decision.Evidence, counts, g.limits)
	}
	return decision, nil
}

// isAllowed reports whether an earlier decision allowed the deletion of a Work.
func (g *Guard) isAllowed(karmadaWork *workv1alpha1.Work, current epoch.Epoch) bool {
	return current.Permits(karmadaWork) || g.isSettled(karmadaWork)
}

// containsUndecided reports whether the Work delivers a Namespace that is deleted, and other Works
// in the cluster deliver objects into this Namespace whose deletion is not decided. The deletion of
// the Namespace would also delete these objects.
func (g *Guard) containsUndecided(ctx context.Context, karmadaWork *workv1alpha1.Work, decision Decision) (bool, error) {
	owner := work.NamespaceOwner(karmadaWork)
	if owner == nil || decision.Evidence.Owner != guard.OwnerGone {
		return false, nil
	}
	works := &workv1alpha1.WorkList{}
	if err := g.karmadaCache.List(ctx, works, client.InNamespace(karmadaWork.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, readError("the Works in Namespace "+owner.Name, karmadaWork, err)
	}
	return slices.ContainsFunc(works.Items, func(each workv1alpha1.Work) bool {
		namespace, _ := templateOf(&each)
		return each.DeletionTimestamp != nil && work.HasBinding(&each) && namespace == owner.Name && !g.isAllowed(&each, decision.epoch)
	}), nil
}

// gatherPeriod is the maximum expected time between the first and the last deletion that one change
// causes.
const gatherPeriod = 5 * time.Second

// countDeletion records a deletion to which limits apply, and returns the recent deletions. It also
// returns how long to wait until all deletions that the same change caused are recorded.
func (g *Guard) countDeletion(cluster string, karmadaWork *workv1alpha1.Work, facts guard.Facts) (guard.Counts, time.Duration) {
	changedCluster, budget := g.limits.Applicable(facts)
	if !changedCluster && !budget {
		return guard.Counts{}, 0
	}
	now, counts := g.now(), guard.Counts{}
	if changedCluster {
		counts.ChangedCluster = g.recent.add(deletionGroup{cluster: cluster}, karmadaWork.Namespace+"/"+karmadaWork.Name, now)
	}
	if budget {
		namespace, template := templateOf(karmadaWork)
		counts.Namespace = g.recent.add(deletionGroup{namespace: namespace}, template, now)
		counts.Fleet = g.recent.add(deletionGroup{}, template, now)
	}
	return counts, max(0, karmadaWork.DeletionTimestamp.Add(gatherPeriod).Sub(now))
}

// CountHeld adds a Work to the metric of held deletions. It is for a Work whose deletion was
// decided, but whose objects cannot be read in the member. MarkSettled removes the Work from the
// metric.
func (g *Guard) CountHeld(cluster string, karmadaWork *workv1alpha1.Work, reason string) {
	g.held.add(cluster, client.ObjectKeyFromObject(karmadaWork), reason)
}

// MarkSettled records that a Work needs no further decision: its objects were deleted or are about
// to be deleted, or the Work and its objects were released.
func (g *Guard) MarkSettled(karmadaWork *workv1alpha1.Work) {
	key := client.ObjectKeyFromObject(karmadaWork)
	g.held.remove(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settledWorks[key] = karmadaWork.UID
}

func (g *Guard) isSettled(karmadaWork *workv1alpha1.Work) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	uid, ok := g.settledWorks[client.ObjectKeyFromObject(karmadaWork)]
	return ok && uid == karmadaWork.UID
}

// StopTrackingWork stops tracking a Work that no longer exists.
func (g *Guard) StopTrackingWork(key types.NamespacedName) {
	g.held.remove(key)
	g.needDecision(key)
}

// needDecision records that a Work needs a decision again.
func (g *Guard) needDecision(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.settledWorks, key)
}

// StopTrackingCluster stops tracking a cluster that no longer exists.
func (g *Guard) StopTrackingCluster(name string) {
	g.held.removeCluster(name)
	g.recent.remove(deletionGroup{cluster: name})
}

// AllowHeldEventAgain lets the next held deletion in a cluster record an event again, even for the
// same reason. Callers call it when the cluster changed.
func (g *Guard) AllowHeldEventAgain(cluster string) { g.held.swapAnnouncedReason(cluster, "") }

// readError wraps the error of a read that was needed to explain a deletion.
func readError(subject string, karmadaWork *workv1alpha1.Work, err error) error {
	return fmt.Errorf("reading %s to explain the deletion of Work %s/%s: %w", subject, karmadaWork.Namespace, karmadaWork.Name, err)
}
