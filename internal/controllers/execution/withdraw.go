package execution

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// withdraw deletes or releases the objects of a deleted Work in the member, or leaves them to the
// Work that replaces it, and then removes the finalizer of the Work. Objects that are still desired
// are kept. If withdraw finds no explanation for the deletion of the Work, it may hold the deletion
// of the objects.
func (c *controller) withdraw(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(stored, workv1alpha1.ExecutionFinalizer) {
		return reconcile.Result{}, nil
	}
	if c.tracker.isReleased(stored, c.now()) {
		return reconcile.Result{RequeueAfter: releasedWorkTTL}, nil
	}
	if c.judge == nil {
		allowed, err := c.verdicts.isDeletionAllowed(ctx, stored)
		if c.recordEpoch(cluster, err) {
			return reconcile.Result{RequeueAfter: epochPollInterval}, nil
		}
		if err != nil || !allowed {
			return reconcile.Result{RequeueAfter: verdictPollInterval}, err
		}
		return c.withdrawObjects(ctx, cluster, stored)
	}
	reachable := c.isReachable(cluster)
	ruling, err := c.judge.Decide(ctx, cluster, stored, reachable)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case ruling.RetryAfter > 0 && !preservesObjects(stored):
		return reconcile.Result{RequeueAfter: ruling.RetryAfter}, nil
	case ruling.Verdict == guard.HandOver:
		return reconcile.Result{}, c.releaseWork(ctx, stored)
	case ruling.Verdict == guard.Hold && (!preservesObjects(stored) || ruling.Reason == guard.ReasonSuspended):
		return reconcile.Result{}, c.judge.ReportHeld(cluster, stored, ruling)
	case !reachable && cluster.DeletionTimestamp == nil:
		// Nothing is deleted or released before the cluster is ready again, because the verdict may
		// change until then.
		return reconcile.Result{}, c.recordUnreachable(cluster, stored)
	}
	return c.withdrawObjects(ctx, cluster, stored)
}

// recordEpoch records on the Cluster that its agent is not allowed to read the epoch, and reports
// whether this is so. The message names no Work, so that there is one event for all Works.
func (c *controller) recordEpoch(cluster *clusterv1alpha1.Cluster, err error) (isUnreadable bool) {
	var unreadable *epochError
	if !errors.As(err, &unreadable) {
		if err == nil {
			c.events.ClearFailure(cluster, workv1alpha1.EventReasonEpochUnreadable)
		}
		return false
	}
	c.events.RecordFailure(cluster, workv1alpha1.EventReasonEpochUnreadable, fmt.Errorf(
		"the agent of cluster %q deletes no objects, because it cannot read the epoch of the control plane: run karmada-controller-manager of this release, which grants the right, or let the user of the agent list ConfigMap %s/%s",
		cluster.Name, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName))
	return true
}

// recordUnreachable records that the deletion of the objects of a Work waits for the cluster.
func (c *controller) recordUnreachable(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	err := fmt.Errorf("cluster(%s) %w", cluster.Name, errClusterNotReady)
	c.events.RecordFailure(stored, workv1alpha1.EventReasonSyncFailed, eventError(cluster.Name, []error{err}))
	return err
}

// withdrawObjects deletes the objects of a Work in the member. If the objects must be preserved, it
// only removes the labels of Karmada from them. Then it removes the finalizer of the Work.
func (c *controller) withdrawObjects(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	if wait := c.deletionRates.reserve(cluster.Name, len(stored.Spec.Workload.Manifests), c.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	failures := blockingFailures(cluster, c.withdrawManifests(ctx, cluster, stored))
	if err := errors.Join(failures...); err != nil {
		c.reportUnservedKinds(cluster, stored, failures)
		c.events.RecordFailure(stored, workv1alpha1.EventReasonSyncFailed, eventError(cluster.Name, failures))
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.releaseWork(ctx, stored)
}

// reportUnservedKinds sets a condition, and counts the deletion as held, if objects of a Work may
// exist in the member but the API server of the member does not serve their kind.
func (c *controller) reportUnservedKinds(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work, failures []error) {
	for _, failure := range failures {
		if unserved := new(member.KindUnservedError); errors.As(failure, &unserved) {
			condition := work.KindNotServedCondition(stored, cluster.Name, unserved.Error())
			c.reportConditions(stored, loop.StatusSettled, condition)
			if c.judge != nil {
				c.judge.CountHeld(cluster.Name, stored, condition.Reason)
			}
			return
		}
	}
}

// releaseWork removes the finalizer of the Work.
func (c *controller) releaseWork(ctx context.Context, stored *workv1alpha1.Work) error {
	released := stored.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
	if _, err := patch.Object(ctx, c.karmada, stored, released); client.IgnoreNotFound(err) != nil {
		return err
	}
	c.tracker.recordRelease(stored, c.now())
	if c.judge != nil {
		c.judge.MarkSettled(stored)
	}
	return nil
}

func preservesObjects(karmadaWork *workv1alpha1.Work) bool {
	return karmadaWork.Spec.PreserveResourcesOnDeletion != nil && *karmadaWork.Spec.PreserveResourcesOnDeletion
}

func (c *controller) withdrawManifests(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) []error {
	if !c.isReachable(cluster) {
		if cluster.DeletionTimestamp != nil {
			// The objects are kept, because the cluster is being removed and cannot be reached.
			return nil
		}
		return []error{fmt.Errorf("cluster(%s) %w", cluster.Name, errClusterNotReady)}
	}
	target, err := c.members.GetForCluster(ctx, cluster)
	if err != nil {
		return []error{err}
	}
	var failures []error
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.DecodeManifest(raw)
		if err != nil {
			// A manifest that cannot be decoded was never applied, so it has no object.
			continue
		}
		withdrawOne := c.deleteObject
		if preservesObjects(stored) {
			withdrawOne = c.releaseObject
		}
		failure := withdrawOne(ctx, target, cluster.Name, manifest)
		if unserved := new(member.KindUnservedError); errors.As(failure, &unserved) && isDeletionConfirmed(cluster, stored) {
			// The failure is ignored, because a user accepted that the object may be kept.
			continue
		}
		failures = append(failures, failure)
	}
	return failures
}

// isDeletionConfirmed reports whether a user confirmed the deletion of a Work, on the Work or on its
// Cluster.
func isDeletionConfirmed(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) bool {
	isConfirmed, _ := guard.ReadUserDecision(stored)
	return isConfirmed || guard.IsConfirmed(cluster.Annotations[workv1alpha1.ConfirmDeletionsAnnotation], stored.DeletionTimestamp.Time)
}

// memberAccess is the part of a member connection that a withdrawal needs.
type memberAccess interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	// FindInAnyVersion reads an object from the API server of the member. It returns nil if it is
	// proven that the object is absent.
	FindInAnyVersion(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
	Client() client.Client
}

// deleteObject deletes the object in the member if it belongs to this Work. The precondition of the
// request is the version of the object that was read, because the owner may have changed since
// then. If the request fails because the object changed, deleteObject reads the object from the API
// server of the member and checks it again.
func (c *controller) deleteObject(ctx context.Context, target memberAccess, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := currentObject(ctx, target, manifest)
	for try := 1; ; try++ {
		if err != nil {
			return fmt.Errorf("reading %s in cluster %s: %w", describeObject(manifest), cluster, err)
		}
		if observed == nil || !work.MayDelete(observed, manifest) {
			return nil
		}
		err = deleteObserved(ctx, target, observed)
		if !isStaleRead(err) || try == maxWriteAttempts {
			break
		}
		observed, err = target.FindInAnyVersion(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	}
	c.metrics.countDelete(cluster, manifest, err)
	if err != nil {
		return fmt.Errorf("deleting %s in cluster %s: %w", describeObject(manifest), cluster, err)
	}
	return nil
}

func deleteObserved(ctx context.Context, target memberAccess, observed *unstructured.Unstructured) error {
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	err := target.Client().Delete(ctx, observed,
		client.PropagationPolicy("Background"), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if servedkinds.IsObjectAbsent(err, observed.GetName()) {
		return nil
	}
	return err
}

// isStaleRead reports whether a write failed because the object changed after it was read, or
// because the member serves other kinds since then.
func isStaleRead(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || member.IsKindUnserved(err)
}

// releaseObject removes the labels and annotations of Karmada from the object in the member. The
// object is kept.
func (c *controller) releaseObject(ctx context.Context, target memberAccess, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := target.FindInAnyVersion(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describeObject(manifest), cluster, err)
	}
	if observed == nil || !work.MayDelete(observed, manifest) || !work.Release(observed) {
		return nil
	}
	if err := target.Client().Update(ctx, observed); err != nil && !servedkinds.IsObjectAbsent(err, observed.GetName()) {
		return fmt.Errorf("releasing %s in cluster %s: %w", describeObject(manifest), cluster, err)
	}
	return nil
}

// currentObject returns the object from the cache of the member, or else from its API server. The
// API server must be asked, because an object that is missing in the cache may exist.
func currentObject(ctx context.Context, target memberAccess, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, key := manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest)
	if observed, cached, err := target.Get(ctx, kind, key); err == nil && cached {
		return observed.DeepCopy(), nil
	}
	return target.FindInAnyVersion(ctx, kind, key)
}
