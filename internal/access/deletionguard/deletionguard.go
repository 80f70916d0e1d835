// Package deletionguard decides for all controllers of a process whether the objects of a deleted
// Work are deleted or kept in the member, and holds all other deletions. It collects the facts, and
// internal/domain/guard decides.
//
// In the control plane, the facts explain the deletion of the Work. An agent cannot observe the
// explanations, so its Guard reads the permission of the control plane instead.
//
// Invariants: every decision on a deletion comes from Guard.Process. All facts are in stored
// objects, so that a restart loses no explanation. A read that fails explains nothing. Facts come
// from caches. If a cache can only show that an object is missing, the package reads from the API
// server.
package deletionguard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// EpochReader returns the epoch of the control plane. It returns an error if the epoch is not
// known.
type EpochReader func(ctx context.Context) (epoch.Epoch, error)

// Options are the dependencies and limits of a Guard.
type Options struct {
	// Karmada reads from caches and writes Works. APIReader reads from the API server.
	Karmada   client.Client
	APIReader client.Reader
	// Discovery is the discovery client for the control plane. An agent does not use it.
	Discovery servedkinds.DiscoveryClient
	// Reports writes the conditions of Works. Events writes the events of Works and Clusters.
	Reports *loop.StatusWriter
	Events  *loop.Events
	// Registry receives the metric of held deletions. It is nil in an agent.
	Registry prometheus.Registerer
	Limits   guard.Limits
	// ReadEpoch is called for each decision. It is nil for a control plane without epochs.
	ReadEpoch EpochReader
	Now       func() time.Time
}

// Guard is the deletion guard for Works. The controllers of one process share one Guard, because
// its limits apply to the deletions of all controllers together.
type Guard struct {
	factCollector
	karmada client.Client
	limits  guard.Limits
	recent  *recentDeletions
	works   *workTracker
	reports *loop.StatusWriter
	events  *loop.Events
	// readEpoch is nil for a control plane without epochs.
	readEpoch EpochReader
	// agent is nil in the control plane.
	agent *permissionReader
}

// New returns the Guard of a control plane, without any recorded deletions.
func New(o Options) (*Guard, error) {
	tracker, err := newWorkTracker(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Guard{
		factCollector: factCollector{karmadaCache: o.Karmada, apiReader: o.APIReader, discovery: o.Discovery,
			templates: &templateStateCache{entries: lru.New(maxTemplateStates)}, now: o.Now},
		karmada: o.Karmada, limits: o.Limits, recent: newRecentDeletions(), works: tracker, reports: o.Reports, events: o.Events,
		readEpoch: o.ReadEpoch,
	}, nil
}

// NewForAgent returns the Guard of an agent.
func NewForAgent(o Options) (*Guard, error) {
	g, err := New(o)
	if err == nil {
		g.agent = &permissionReader{karmada: o.APIReader, readEpoch: o.ReadEpoch, now: o.Now}
	}
	return g, err
}

// Decision is the decision about a deletion and the facts on which it is based.
type Decision struct {
	guard.Decision
	Facts guard.Facts
	// epoch is the epoch of the control plane at the time of the decision.
	epoch epoch.Epoch
}

// Process decides about the deletion of a Work and executes the decision, except for the deletion
// of objects in the member: the caller of a push mode cluster or of an agent deletes or releases
// them if the action is Delete, and then calls Release. For a pull mode cluster, Process permits
// the agent to delete the objects, or takes back the permission. Every deletion of objects in a
// member needs this decision. The returned RecheckAfter is the delay before the caller must call
// Process again.
//
// If the cluster is unreachable, nothing can be deleted there, and the facts may change before the
// cluster is reachable again. Process then neither counts deletions nor reads templates.
func (g *Guard) Process(ctx context.Context, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work,
	isReachable bool) (guard.Decision, error) {
	if g.works.isReleased(karmadaWork, g.now()) {
		return guard.Decision{RecheckAfter: releasedWorkTTL}, nil
	}
	decision, err := g.decide(ctx, cluster, karmadaWork, isReachable)
	if err != nil {
		return guard.Decision{}, err
	}
	switch {
	case decision.Action == guard.Keep:
		if decision.Facts.AgentLostPermissions {
			g.events.RecordFailure(cluster, workv1alpha1.EventReasonDeletionAbandoned, fmt.Errorf(
				"the objects of Work %s/%s stay in the cluster: the execution namespace was deleted, and with it the permissions of the agent",
				karmadaWork.Namespace, karmadaWork.Name))
		}
		return decision.Decision, g.Release(ctx, karmadaWork)
	case g.agent != nil:
		g.reportEpochReadability(cluster, decision.Reason)
		return decision.Decision, nil
	case decision.Action == guard.Hold:
		g.hold(cluster, karmadaWork, decision)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull || decision.Reason.IsTransient() {
		return decision.Decision, nil
	}
	decision.RecheckAfter, err = g.writePermission(ctx, karmadaWork, decision)
	return decision.Decision, err
}

// decide returns the decision about the deletion of a Work, without any effect except that it
// counts the deletion.
func (g *Guard) decide(ctx context.Context, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work,
	isReachable bool) (Decision, error) {
	if g.agent != nil {
		facts, err := g.agent.collectFacts(ctx, karmadaWork)
		return Decision{Decision: guard.DecideForAgent(facts)}, err
	}
	decision, err := g.collectAllFacts(ctx, cluster, karmadaWork)
	if err != nil {
		return Decision{}, err
	}
	decision.Facts.ClusterUnreachable = !isReachable
	decision.Decision = guard.Decide(decision.Facts, guard.Counts{}, g.limits)
	if decision.Reason == guard.ReasonTemplateNotRead {
		decision.Facts.Template = g.readTemplateState(ctx, karmadaWork)
		decision.Decision = guard.Decide(decision.Facts, guard.Counts{}, g.limits)
	}
	if decision.Action == guard.Delete && isReachable {
		decision.Decision = guard.Decide(decision.Facts, g.countDeletion(cluster.Name, karmadaWork, decision.Facts), g.limits)
	}
	return decision, nil
}

// collectAllFacts returns the facts about the deletion of a Work, without the state of its
// template.
func (g *Guard) collectAllFacts(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work) (decision Decision, err error) {
	if decision.Facts, err = g.collectFacts(ctx, cluster, karmadaWork); err != nil {
		return decision, err
	}
	if decision.Facts.Owner == guard.OwnerRequiresWork {
		if decision.Facts, err = g.verifyRequired(ctx, cluster, karmadaWork, decision.Facts); err != nil {
			return decision, err
		}
	}
	if g.readEpoch != nil {
		if decision.epoch, err = g.readEpoch(ctx); err != nil {
			return decision, fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
		}
	}
	facts, now := &decision.Facts, g.now()
	facts.RestoreUnconfirmed = decision.epoch.NeedsConfirmation()
	facts.AlreadyAllowed = g.isAllowed(karmadaWork, decision.epoch)
	facts.PreservesObjects = work.PreservesObjects(karmadaWork)
	facts.DeletionAge, facts.HoldAge = now.Sub(karmadaWork.DeletionTimestamp.Time), g.works.holdAge(karmadaWork, now)
	if facts.AgentLostPermissions, err = g.hasAgentLostPermissions(ctx, cluster, karmadaWork, decision); err != nil {
		return decision, err
	}
	facts.ContainsUndecided, err = g.containsUndecided(ctx, karmadaWork, decision)
	return decision, err
}

// isAllowed reports whether an earlier decision allowed the deletion of a Work.
func (g *Guard) isAllowed(karmadaWork *workv1alpha1.Work, current epoch.Epoch) bool {
	return current.Permits(karmadaWork) || g.works.isSettled(karmadaWork)
}

// hasAgentLostPermissions reports whether the agent may delete the objects of a Work but cannot do
// so any more, because the execution namespace is being deleted. A cluster in deletion is left to
// the cluster controller.
func (g *Guard) hasAgentLostPermissions(ctx context.Context, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work,
	decision Decision) (bool, error) {
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull || cluster.DeletionTimestamp != nil ||
		!decision.epoch.Permits(karmadaWork) || decision.Facts.DeletionAge < guard.LostPermissionsDelay {
		return false, nil
	}
	namespace := newNamespace(karmadaWork.Namespace)
	if err := g.karmadaCache.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return false, fmt.Errorf("reading execution namespace %s: %w", karmadaWork.Namespace, err)
	}
	deletedAt := namespace.GetDeletionTimestamp()
	return deletedAt != nil && g.now().Sub(deletedAt.Time) >= guard.LostPermissionsDelay, nil
}

// containsUndecided reports whether the Work delivers a Namespace that is deleted, and other Works
// in the cluster deliver objects into this Namespace whose deletion is not decided. The deletion of
// the Namespace would also delete these objects.
func (g *Guard) containsUndecided(ctx context.Context, karmadaWork *workv1alpha1.Work, decision Decision) (bool, error) {
	owner := work.NamespaceOwner(karmadaWork)
	if owner == nil || decision.Facts.Owner != guard.OwnerGone {
		return false, nil
	}
	works := &workv1alpha1.WorkList{}
	if err := g.karmadaCache.List(ctx, works, client.InNamespace(karmadaWork.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, readError("the Works in Namespace "+owner.Name, karmadaWork, err)
	}
	return slices.ContainsFunc(works.Items, func(other workv1alpha1.Work) bool {
		namespace, _ := countedTemplate(&other)
		return other.DeletionTimestamp != nil && work.HasBinding(&other) && namespace == owner.Name && !g.isAllowed(&other, decision.epoch)
	}), nil
}

// countDeletion records a deletion to which limits apply, and returns the recent deletions.
func (g *Guard) countDeletion(cluster string, karmadaWork *workv1alpha1.Work, facts guard.Facts) (counts guard.Counts) {
	changedCluster, budget := g.limits.Applicable(facts)
	if changedCluster {
		counts.ChangedCluster = g.recent.add(deletionGroup{cluster: cluster}, karmadaWork.Namespace+"/"+karmadaWork.Name, g.now())
	}
	if budget {
		namespace, template := countedTemplate(karmadaWork)
		counts.Namespace = g.recent.add(deletionGroup{namespace: namespace}, template, g.now())
		counts.Fleet = g.recent.add(deletionGroup{}, template, g.now())
	}
	return counts
}

const (
	// permissionRecheckDelay is the interval at which a permitted deletion is decided again,
	// because the agent may lose its permissions.
	permissionRecheckDelay = 30 * time.Second
	// conflictRecheckDelay is the delay after a conflict. The Work is processed again after this
	// delay, because the watch does not queue it if only its status changed.
	conflictRecheckDelay = 200 * time.Millisecond
)

// writePermission permits the agent to delete the objects of a Work, or takes back its permission
// if the deletion is held. The patch has the resourceVersion and the UID of the Work as
// preconditions.
func (g *Guard) writePermission(ctx context.Context, karmadaWork *workv1alpha1.Work,
	decision Decision) (recheckAfter time.Duration, err error) {
	desired := karmadaWork.DeepCopy()
	recheckAfter = decision.RecheckAfter
	if decision.Action == guard.Delete {
		if desired.Annotations == nil {
			desired.Annotations = map[string]string{}
		}
		desired.Annotations[workv1alpha1.DeletionAllowedAnnotation] = decision.epoch.PermissionValue(karmadaWork)
		recheckAfter = permissionRecheckDelay
	} else {
		delete(desired.Annotations, workv1alpha1.DeletionAllowedAnnotation)
	}
	_, err = patch.Object(ctx, g.karmada, karmadaWork, desired)
	switch {
	case apierrors.IsConflict(err):
		return conflictRecheckDelay, nil
	case client.IgnoreNotFound(err) != nil:
		return 0, fmt.Errorf("writing the permission to delete the objects of Work %s/%s: %w", karmadaWork.Namespace, karmadaWork.Name, err)
	}
	if decision.Action == guard.Delete {
		g.works.settle(karmadaWork)
	}
	return recheckAfter, nil
}

// Release removes the finalizer of a Work whose objects were deleted, released or kept.
func (g *Guard) Release(ctx context.Context, karmadaWork *workv1alpha1.Work) error {
	released := karmadaWork.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
	if g.agent == nil {
		delete(released.Annotations, workv1alpha1.DeletionAllowedAnnotation)
	}
	if _, err := patch.Object(ctx, g.karmada, karmadaWork, released); client.IgnoreNotFound(err) != nil {
		return err
	}
	g.works.release(karmadaWork, g.now())
	return nil
}

// StopTrackingWork stops tracking a Work that no longer exists.
func (g *Guard) StopTrackingWork(key types.NamespacedName) { g.works.remove(key) }

// StopTrackingCluster stops tracking a cluster that no longer exists.
func (g *Guard) StopTrackingCluster(name string) {
	g.works.removeCluster(name)
	g.recent.remove(deletionGroup{cluster: name})
}

// AllowHeldEventAgain lets the next held deletion in a cluster record an event again, even for the
// same reason. Callers call it when the cluster changed.
func (g *Guard) AllowHeldEventAgain(cluster string) { g.works.swapAnnouncedReason(cluster, "") }

// readError wraps the error of a read that was needed to explain a deletion.
func readError(subject string, karmadaWork *workv1alpha1.Work, err error) error {
	return fmt.Errorf("reading %s to explain the deletion of Work %s/%s: %w", subject, karmadaWork.Namespace, karmadaWork.Name, err)
}
