package deletionguard

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// namespaceReadInterval is how long an agent remembers that its control plane gives no permissions,
// before it reads the execution namespace again.
const namespaceReadInterval = 2 * time.Second

// permissionReader reads in an agent whether the control plane permits the deletion of the objects of
// a Work. An annotation of the execution namespace says whether the control plane gives permissions,
// because an agent may write Works but not this namespace. A control plane of an older release gives
// no permissions.
type permissionReader struct {
	karmada   client.Reader
	readEpoch EpochReader
	now       func() time.Time

	mu sync.Mutex
	// needsPermission stays true after the namespace has required permissions once, because a
	// namespace that was just created again may not have the annotation yet.
	needsPermission bool
	lastRead        time.Time
}

// collectFacts returns the facts about the deletion of a Work. It returns an error if the epoch or
// the namespace cannot be read. A restored backup may contain old permissions, and namespaces that
// require no permission. Until a user confirms the restore, both are ignored.
func (p *permissionReader) collectFacts(ctx context.Context, karmadaWork *workv1alpha1.Work) (guard.AgentFacts, error) {
	facts := guard.AgentFacts{PreservesObjects: work.PreservesObjects(karmadaWork)}
	current, err := p.readEpoch(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return facts, fmt.Errorf("reading the epoch of the control plane: %w", err)
	}
	facts.RestoreUnconfirmed, facts.IsPermitted = current.NeedsConfirmation(), err == nil && current.Permits(karmadaWork)
	// An agent that may only list some ConfigMaps finds no epoch, although its permission names one.
	facts.IsEpochUnreadable = err != nil || current.ID == "" && epoch.PermittingEpochID(karmadaWork) != ""
	if !facts.IsEpochUnreadable && !facts.IsPermitted {
		facts.NeedsPermission, err = p.readNeedsPermission(ctx, karmadaWork.Namespace)
		return facts, err
	}
	return facts, nil
}

func (p *permissionReader) readNeedsPermission(ctx context.Context, namespace string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.needsPermission || p.now().Sub(p.lastRead) < namespaceReadInterval {
		return p.needsPermission, nil
	}
	executionNamespace := &corev1.Namespace{}
	if err := p.karmada.Get(ctx, client.ObjectKey{Name: namespace}, executionNamespace); err != nil {
		return true, fmt.Errorf("reading namespace %s to find out whether deletions need a permission of the control plane: %w", namespace, err)
	}
	p.needsPermission, p.lastRead = executionNamespace.Annotations[workv1alpha1.DeletionVerdictsAnnotation] == workv1alpha1.DeletionVerdictsRequired, p.now()
	return p.needsPermission, nil
}

// reportEpochReadability records on the Cluster that its agent may not read the epoch. The message
// names no Work, so that there is one event for all Works.
func (g *Guard) reportEpochReadability(cluster *clusterv1alpha1.Cluster, reason guard.Reason) {
	if reason != guard.ReasonEpochUnreadable {
		g.events.ClearFailure(cluster, workv1alpha1.EventReasonEpochUnreadable)
		return
	}
	g.events.RecordFailure(cluster, workv1alpha1.EventReasonEpochUnreadable, fmt.Errorf(
		"the agent of cluster %q deletes no objects, because it cannot read the epoch of the control plane: run karmada-controller-manager of this release, which grants the permission, or let the user of the agent list ConfigMap %s/%s",
		cluster.Name, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName))
}
