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
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/served"
	"karmada.io/karmada/internal/domain/work"
)

// withdraw takes the objects of a Work that is being deleted out of the member, or
// leaves them to the next Work, and then releases the Work. What nothing explains may be
// held, and what is still wanted stays where it is.
func (c *controller) withdraw(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(stored, workv1alpha1.ExecutionFinalizer) {
		return reconcile.Result{}, nil
	}
	if c.applied.isReleased(stored, c.now()) {
		return reconcile.Result{RequeueAfter: releasedFor}, nil
	}
	if c.judge == nil {
		if allowed, err := c.verdicts.allow(ctx, stored); err != nil || !allowed {
			return reconcile.Result{RequeueAfter: verdictPoll}, err
		}
		return c.takeBack(ctx, cluster, stored, judge.Ruling{})
	}
	usable := c.usable(cluster)
	ruling, err := c.judge.Decide(ctx, cluster, stored, usable)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case ruling.After > 0 && !preserves(stored):
		return reconcile.Result{RequeueAfter: ruling.After}, nil
	case ruling.Verdict == guard.HandOver:
		return reconcile.Result{}, c.letGo(ctx, cluster, stored, ruling)
	case ruling.Verdict == guard.Hold && !preserves(stored):
		return reconcile.Result{}, c.judge.Hold(cluster, stored, ruling)
	case !usable && cluster.DeletionTimestamp == nil:
		// The verdict may be another one when the cluster is back.
		return reconcile.Result{}, c.unreachable(cluster, stored)
	}
	return c.takeBack(ctx, cluster, stored, ruling)
}

// unreachable reports that the objects of a Work wait for the cluster.
func (c *controller) unreachable(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	err := fmt.Errorf("cluster(%s) %w", cluster.Name, errNotReady)
	c.events.Failed(stored, workv1alpha1.EventReasonSyncFailed, told(cluster.Name, []error{err}))
	return err
}

// takeBack deletes the objects of a Work in the member, or takes the marks of Karmada
// off them if they are to be preserved, and releases the Work.
func (c *controller) takeBack(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work, ruling judge.Ruling) (reconcile.Result, error) {
	if wait := c.budgets.spend(cluster.Name, len(stored.Spec.Workload.Manifests), c.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	failures := failuresThatHold(cluster, c.withdrawAll(ctx, cluster, stored))
	if err := errors.Join(failures...); err != nil {
		c.reportUnserved(cluster, stored, failures)
		c.events.Failed(stored, workv1alpha1.EventReasonSyncFailed, told(cluster.Name, failures))
		return reconcile.Result{}, err
	}
	if preserves(stored) {
		ruling.Verdict = guard.HandOver
	}
	return reconcile.Result{}, c.letGo(ctx, cluster, stored, ruling)
}

// reportUnserved reports in a condition, and counts, that objects of a Work may exist in
// the member, whose API server does not let them be read.
func (c *controller) reportUnserved(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work, failures []error) {
	for _, failure := range failures {
		if unserved := new(member.UnservedError); errors.As(failure, &unserved) {
			held := work.KindNotServed(stored, cluster.Name, unserved.Error())
			c.report(stored, report.Soon, held)
			if c.judge != nil {
				c.judge.CountHeld(cluster.Name, stored, held.Reason)
			}
			return
		}
	}
}

// letGo releases the Work.
func (c *controller) letGo(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work, ruling judge.Ruling) error {
	released := stored.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
	if _, err := patch.Object(ctx, c.karmada, stored, released); client.IgnoreNotFound(err) != nil {
		return err
	}
	c.applied.release(stored, c.now())
	if c.judge != nil {
		c.judge.Settle(cluster.Name, stored, ruling)
	}
	return nil
}

func preserves(of *workv1alpha1.Work) bool {
	return of.Spec.PreserveResourcesOnDeletion != nil && *of.Spec.PreserveResourcesOnDeletion
}

func (c *controller) withdrawAll(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) []error {
	if !c.usable(cluster) {
		if cluster.DeletionTimestamp != nil {
			// The cluster goes and cannot be asked: its objects stay where they are.
			return nil
		}
		return []error{fmt.Errorf("cluster(%s) %w", cluster.Name, errNotReady)}
	}
	target, err := c.members.For(ctx, cluster)
	if err != nil {
		return []error{err}
	}
	var failures []error
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			// What cannot be read was never created.
			continue
		}
		take := c.remove
		if preserves(stored) {
			take = c.release
		}
		failure := take(ctx, target, cluster.Name, manifest)
		if unserved := new(member.UnservedError); errors.As(failure, &unserved) && confirmed(cluster, stored) {
			// A user knows that the object may stay.
			continue
		}
		failures = append(failures, failure)
	}
	return failures
}

// confirmed reports whether a user confirmed the deletion of a Work on its Cluster.
func confirmed(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) bool {
	return guard.Confirmed(cluster.Annotations[workv1alpha1.ConfirmDeletionsAnnotation], stored.DeletionTimestamp.Time)
}

// holder is a member cluster, as far as it has to be known to take something out
// of it.
type holder interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	// Find returns an object as the member has it, nil if it is proven to be absent.
	Find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
	Client() client.Client
}

// remove deletes the member's object if it is of this Work. Whether it is may have
// changed since we saw it, so it is deleted only as it was looked at; otherwise the
// member is asked how it is now.
func (c *controller) remove(ctx context.Context, target holder, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := current(ctx, target, manifest)
	for try := 1; ; try++ {
		if err != nil {
			return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), cluster, err)
		}
		if observed == nil || !work.MayDelete(observed, manifest) {
			return nil
		}
		err = removeAsSeen(ctx, target, observed)
		if !isStale(err) || try == writeTries {
			break
		}
		observed, err = target.Find(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	}
	c.counters.delete(cluster, manifest, err)
	if err != nil {
		return fmt.Errorf("deleting %s in cluster %s: %w", describe(manifest), cluster, err)
	}
	return nil
}

func removeAsSeen(ctx context.Context, target holder, observed *unstructured.Unstructured) error {
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	err := target.Client().Delete(ctx, observed,
		client.PropagationPolicy("Background"), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if served.IsObjectAbsent(err, observed.GetName()) {
		return nil
	}
	return err
}

// isStale reports whether a write failed because the object, or the kind that the member
// serves, is not what was read before.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || member.IsUnserved(err)
}

// release takes our marks off the member's object, which stays.
func (c *controller) release(ctx context.Context, target holder, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := target.Find(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), cluster, err)
	}
	if observed == nil || !work.MayDelete(observed, manifest) || !work.Release(observed) {
		return nil
	}
	if err := target.Client().Update(ctx, observed); err != nil && !served.IsObjectAbsent(err, observed.GetName()) {
		return fmt.Errorf("releasing %s in cluster %s: %w", describe(manifest), cluster, err)
	}
	return nil
}

// current is the member's object: what we see of it, or else what the member
// says. That we do not see an object does not mean that it is not there.
func current(ctx context.Context, target holder, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, key := manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest)
	if observed, cached, err := target.Get(ctx, kind, key); err == nil && cached {
		return observed.DeepCopy(), nil
	}
	return target.Find(ctx, kind, key)
}
