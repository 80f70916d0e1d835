package clusterclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
)

const (
	// blockersTimeout limits the requests for the objects that block a Cluster's deletion.
	blockersTimeout = 10 * time.Second
	// progressInterval is the maximum time without a message while waiting for a deletion.
	progressInterval = 5 * time.Second
	// pageSize is the maximum number of objects in a list response.
	pageSize = 500
	// maxListedBindings limits the number of blocking bindings in a message.
	maxListedBindings = 3
	// parallelWorkDeletions limits the concurrent deletions of Works.
	parallelWorkDeletions = 16
)

// Removal configures a Cluster's removal from the control plane.
type Removal struct {
	Cluster *clusterv1alpha1.Cluster
	// Wait limits the wait for the deletion.
	Wait time.Duration
	// Force removes the finalizers if the Cluster still exists after Wait.
	Force bool
	// DeniedMeansGone makes a Forbidden or Unauthorized response count as proof that the Cluster is gone,
	// because an agent loses its permissions together with its Cluster.
	DeniedMeansGone bool
	// ExtraBlockers returns additional lines about what blocks the deletion. works is the number of remaining
	// Works. It may be nil.
	ExtraBlockers func(ctx context.Context, works int) []string
}

// BlockedRemovalError means that a Cluster still exists at the end of the time limit for its deletion.
type BlockedRemovalError struct {
	Cluster string
	Wait    time.Duration
	// Blockers describes each object that blocks the deletion, one per line.
	Blockers []string
}

func (b *BlockedRemovalError) Error() string {
	return fmt.Sprintf("cluster %q was deleted and is not gone after %s:%s\nThe deletion continues. Allow more time with --wait, or repeat with --force, which leaves the propagated objects in the member",
		b.Cluster, b.Wait, formatBlockers(b.Blockers))
}

// RemoveCluster deletes a Cluster and waits until it is gone. If Force is set, RemoveCluster removes the
// finalizers of a Cluster that still exists after the wait. It returns within twice removal.Wait and some
// seconds, even if no controller or API server responds.
func (c *Client) RemoveCluster(ctx context.Context, removal Removal) error {
	err := c.DeleteCluster(ctx, removal)
	var blocked *BlockedRemovalError
	if !removal.Force || !errors.As(err, &blocked) {
		return err
	}
	c.LogForcedRemoval(blocked)
	forcing, cancel := context.WithTimeout(ctx, max(removal.Wait, RollbackTimeout))
	defer cancel()
	return c.ForceDeleteCluster(forcing, removal.Cluster)
}

// LogForcedRemoval logs that the Cluster's finalizers are being removed, and which objects blocked its
// deletion.
func (c *Client) LogForcedRemoval(blocked *BlockedRemovalError) {
	c.Log.Printf("Cluster %s is not gone after %s:%s\nRemoving its finalizers: the objects propagated to it stay in the cluster",
		blocked.Cluster, blocked.Wait, formatBlockers(blocked.Blockers))
}

// DeleteCluster deletes a Cluster and waits until it is gone. It returns a *BlockedRemovalError if the
// Cluster still exists after Wait. It ignores Force.
func (c *Client) DeleteCluster(ctx context.Context, removal Removal) error {
	if reason := domaincluster.RetentionReason(removal.Cluster); reason != "" && removal.Cluster.DeletionTimestamp.IsZero() {
		c.Log.Printf("Cluster %s is not Ready (%s): unless it becomes Ready in time, the objects propagated to it stay in the cluster",
			removal.Cluster.Name, reason)
	}
	waiting, cancel := context.WithTimeout(ctx, removal.Wait)
	defer cancel()
	// removal.Cluster has a UID, so Delete deletes only the Cluster that the caller read and verified.
	if err := c.Delete(waiting, removal.Cluster); err != nil {
		return err
	}
	err := c.awaitRemoval(waiting, removal)
	if err == nil {
		return c.deleteUnprocessedNamespace(waiting, removal)
	}
	if waiting.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cluster %q was deleted, and its deletion continues although this command no longer waits for it: %w",
			removal.Cluster.Name, err)
	}
	reading, cancel := context.WithTimeout(ctx, blockersTimeout)
	defer cancel()
	return &BlockedRemovalError{Cluster: removal.Cluster.Name, Wait: removal.Wait, Blockers: c.blockers(reading, removal)}
}

// deleteUnprocessedNamespace deletes the execution namespace of a Cluster that was deleted before the
// cluster controller added its finalizer. The controller would keep the namespace for minutes, because it
// cannot distinguish it from one that a registration has just created.
func (c *Client) deleteUnprocessedNamespace(ctx context.Context, removal Removal) error {
	if controllerutil.ContainsFinalizer(removal.Cluster, clusterv1alpha1.ClusterControllerFinalizer) || removal.DeniedMeansGone {
		return nil
	}
	namespace, err := c.Get(ctx, registration.NewExecutionNamespace(removal.Cluster.Name))
	if err != nil || namespace == nil || !namespace.GetDeletionTimestamp().IsZero() {
		return err
	}
	return c.Delete(ctx, namespace)
}

// awaitRemoval waits until a Cluster is gone, and logs the blocking objects whenever they change.
func (c *Client) awaitRemoval(ctx context.Context, removal Removal) error {
	for logged := ""; ; {
		quiet, cancel := context.WithTimeout(ctx, progressInterval)
		err := c.AwaitGone(quiet, removal.Cluster)
		quietErr := quiet.Err()
		cancel()
		if removal.DeniedMeansGone && isDenied(err) {
			return nil
		}
		if err == nil || quietErr == nil || ctx.Err() != nil {
			return err
		}
		if blockers := formatBlockers(c.blockers(ctx, removal)); blockers != logged && ctx.Err() == nil {
			c.Log.Printf("waiting until Cluster %s is gone:%s", removal.Cluster.Name, blockers)
			logged = blockers
		}
	}
}

// isDenied reports whether the API server returned Forbidden or Unauthorized.
func isDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// ForceDeleteCluster deletes the execution namespace, the Works and the Cluster, and removes their
// finalizers. It deletes the namespace first, so that no controller can add a finalizer again. If the
// namespace or a Work cannot be deleted, ForceDeleteCluster still removes the Cluster, and the cluster
// controller deletes the rest.
func (c *Client) ForceDeleteCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	namespace := registration.NewExecutionNamespace(cluster.Name)
	failures := []error{c.Delete(ctx, namespace), c.forceDeleteWorks(ctx, namespace.Name)}
	for _, object := range []client.Object{namespace, cluster} {
		failures = append(failures, c.RemoveFinalizers(ctx, object))
	}
	err := c.AwaitGone(ctx, cluster)
	if failed := errors.Join(failures...); failed != nil && err == nil {
		c.Log.Printf("warning: Cluster %s is gone, but some of its objects remain: %v", cluster.Name, failed)
		return nil
	}
	if wait.Interrupted(err) {
		err = fmt.Errorf("cluster %q still exists although its finalizers were removed; another client adds them again: %w", cluster.Name, err)
	}
	return errors.Join(append(failures, err)...)
}

// forceDeleteWorks deletes the namespace's Works and removes their finalizers.
func (c *Client) forceDeleteWorks(ctx context.Context, namespace string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWorkDeletions)
	works := &workv1alpha1.WorkList{}
	for next := true; next; next = works.Continue != "" {
		if err := c.API.List(ctx, works, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(works.Continue)); err != nil {
			return errors.Join(group.Wait(), fmt.Errorf("listing the Works in %s: %w", namespace, err))
		}
		for i := range works.Items {
			work := works.Items[i].DeepCopy()
			group.Go(func() error { return c.forceDeleteWork(ctx, work) })
		}
	}
	return group.Wait()
}

func (c *Client) forceDeleteWork(ctx context.Context, work *workv1alpha1.Work) error {
	if work.DeletionTimestamp == nil {
		uid := work.UID
		if err := c.API.Delete(ctx, work.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return c.WrapError("deleting", work, err)
		}
	}
	return c.RemoveFinalizers(ctx, work)
}

// ListClusters lists the control plane's Clusters.
func (c *Client) ListClusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	list := &clusterv1alpha1.ClusterList{}
	err := c.API.List(ctx, list)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s does not serve %s: check that it is a Karmada control plane, and choose its kubeconfig or context (%w)",
			c.Host, clusterv1alpha1.GroupVersion, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing Clusters in %s (%s): %w%s", c.Name, c.Host, err, prependNewline(registration.Advice(err, c.Name)))
	}
	return list.Items, nil
}

func prependNewline(advice string) string {
	if advice == "" {
		return ""
	}
	return "\n" + advice
}
