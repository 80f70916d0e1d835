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
)

// deleteWork processes a Work that is being deleted: it deletes or releases the objects of the Work
// in the member, keeps them for the next Work, or holds the deletion, as the deletion guard
// decides. Then it removes the finalizer of the Work.
func (c *controller) deleteWork(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	stored *workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(stored, workv1alpha1.ExecutionFinalizer) {
		return reconcile.Result{}, nil
	}
	decision, err := c.guard.Process(ctx, cluster, stored, c.isReachable(cluster))
	if err != nil || decision.Action != guard.Delete {
		if decision.Reason == guard.ReasonClusterUnreachable {
			c.events.RecordFailure(stored, workv1alpha1.EventReasonSyncFailed, eventError(cluster.Name, []error{clusterNotReadyError(cluster)}))
		}
		return reconcile.Result{RequeueAfter: decision.RecheckAfter}, err
	}
	if wait := c.deletionRates.reserve(cluster.Name, len(stored.Spec.Workload.Manifests), c.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	failures := blockingFailures(cluster, c.deleteObjects(ctx, cluster, stored))
	if err := errors.Join(failures...); err != nil {
		if unserved := new(member.KindUnservedError); errors.As(err, &unserved) {
			c.guard.ReportUnservedKind(cluster, stored, unserved)
		}
		c.events.RecordFailure(stored, workv1alpha1.EventReasonSyncFailed, eventError(cluster.Name, failures))
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.guard.Release(ctx, stored)
}

func clusterNotReadyError(cluster *clusterv1alpha1.Cluster) error {
	return fmt.Errorf("cluster(%s) %w", cluster.Name, errClusterNotReady)
}

// deleteObjects deletes the objects of a Work in the member. If the Work preserves its objects,
// deleteObjects only removes the labels of Karmada from them.
func (c *controller) deleteObjects(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) []error {
	if !c.isReachable(cluster) {
		if cluster.DeletionTimestamp != nil {
			// The objects are kept, because the cluster is being removed and cannot be reached.
			return nil
		}
		return []error{clusterNotReadyError(cluster)}
	}
	target, err := c.members.GetForCluster(ctx, cluster)
	if err != nil {
		return []error{err}
	}
	var failures []error
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.DecodeManifestMetadata(raw)
		if err != nil {
			// A manifest that cannot be decoded was never applied, so it has no object.
			continue
		}
		process := c.deleteObject
		if work.PreservesObjects(stored) {
			process = c.releaseObject
		}
		err = process(ctx, target, cluster.Name, manifest)
		if unserved := new(member.KindUnservedError); errors.As(err, &unserved) && guard.IsDeletionConfirmed(cluster, stored) {
			// The error is ignored, because a user accepted that the object may be kept.
			continue
		}
		failures = append(failures, err)
	}
	return failures
}

// memberAccess is the part of a member connection that the deletion of objects needs.
type memberAccess interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	// FindInAnyVersion reads an object from the API server of the member. It returns nil if it is
	// proven that the object does not exist.
	FindInAnyVersion(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
	Client() client.Client
}

// deleteObject deletes the object in the member if it belongs to this Work. The precondition of the
// request is the version of the object that was read, because the owner may have changed since
// then. If the request fails because the object changed, deleteObject reads the object from the API
// server of the member and checks it again.
func (c *controller) deleteObject(ctx context.Context, target memberAccess, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := currentObject(ctx, target, manifest)
	for attempt := 1; ; attempt++ {
		if err != nil {
			return fmt.Errorf("reading %s in cluster %s: %w", describeObject(manifest), cluster, err)
		}
		if observed == nil || !work.MayDelete(observed, manifest) {
			return nil
		}
		err = deleteObservedObject(ctx, target, observed)
		if !isStaleRead(err) || attempt == maxWriteAttempts {
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

func deleteObservedObject(ctx context.Context, target memberAccess, observed *unstructured.Unstructured) error {
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	err := target.Client().Delete(ctx, observed,
		client.PropagationPolicy("Background"), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if servedkinds.IsObjectNotFound(err, observed.GetName()) {
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
	if err := target.Client().Update(ctx, observed); err != nil && !servedkinds.IsObjectNotFound(err, observed.GetName()) {
		return fmt.Errorf("releasing %s in cluster %s: %w", describeObject(manifest), cluster, err)
	}
	return nil
}

// currentObject returns the object from the cache of the member, or else from its API server,
// because an object that is missing in the cache may exist.
func currentObject(ctx context.Context, target memberAccess, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, key := manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest)
	if observed, cached, err := target.Get(ctx, kind, key); err == nil && cached {
		return observed.DeepCopy(), nil
	}
	return target.FindInAnyVersion(ctx, kind, key)
}
