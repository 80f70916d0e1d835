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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// errHeld tells that a deletion waits for somebody to confirm it.
var errHeld = errors.New("the deletion waits for a confirmation")

// withdraw takes the objects of a Work that is being deleted out of the member,
// or lets go of them, and then lets the Work go. What nothing explains may be
// held, and what is still wanted stays where it is.
func (c *controller) withdraw(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(stored, workv1alpha1.ExecutionFinalizer) || c.applied.isReleased(stored) {
		return reconcile.Result{}, nil
	}
	facts, verdict, err := c.judge(ctx, cluster, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case verdict == guard.HandOver:
		return reconcile.Result{}, c.letGo(ctx, stored)
	case verdict != guard.Delete && !preserves(stored):
		return reconcile.Result{}, c.hold(cluster, stored)
	}
	if wait := c.bursts.spend(cluster.Name, len(stored.Spec.Workload.Manifests), c.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	failures := c.withdrawAll(ctx, cluster, stored)
	if err := errors.Join(failures...); err != nil {
		c.events.Failed(stored, workv1alpha1.EventReasonSyncFailed, told(cluster.Name, failures))
		return reconcile.Result{}, err
	}
	if !preserves(stored) {
		c.bursts.done(cluster.Name, facts, c.now())
	}
	return reconcile.Result{}, c.letGo(ctx, stored)
}

// judge decides about the deletion of a Work. As long as the cluster is out of
// reach nothing can be deleted, and what was decided about the cluster is not
// settled; only what is still wanted is known.
func (c *controller) judge(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (guard.Facts, guard.Verdict, error) {
	if c.explain == nil {
		return guard.Facts{}, guard.Delete, nil
	}
	facts, err := c.explain.facts(ctx, cluster, stored)
	if err != nil {
		return facts, guard.Hold, err
	}
	if facts.Owner == guard.Wants {
		if facts, err = c.explain.confirm(ctx, cluster, stored, facts); err != nil {
			return facts, guard.Hold, err
		}
	}
	if !guard.Open(facts) || !c.usable(cluster) {
		return facts, guard.Decide(facts, guard.Burst{}, c.options.Deletions), nil
	}
	burst, err := c.size(ctx, cluster, facts.Owner)
	if err != nil {
		return facts, guard.Hold, err
	}
	verdict := guard.Decide(facts, burst, c.options.Deletions)
	if verdict == guard.Prove {
		facts.Template = c.explain.prove(ctx, stored, c.now())
		verdict = guard.Decide(facts, burst, c.options.Deletions)
	}
	return facts, verdict, nil
}

// hold keeps the objects of a Work in the member and tells how to go on.
func (c *controller) hold(cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	c.report(stored, report.Soon, work.DeletionHeld(stored, cluster.Name))
	if c.bursts.tell(cluster.Name) {
		c.events.Failed(cluster, workv1alpha1.EventReasonMassDeletionStopped, errors.New(work.MassDeletionStopped(cluster.Name)))
	}
	return fmt.Errorf("cluster(%s): %w", cluster.Name, errHeld)
}

// letGo ends the Work.
func (c *controller) letGo(ctx context.Context, stored *workv1alpha1.Work) error {
	released := stored.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
	if _, err := patch.Object(ctx, c.karmada, stored, released); client.IgnoreNotFound(err) != nil {
		return err
	}
	c.applied.release(stored)
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
		if preserves(stored) {
			failures = append(failures, release(ctx, target, manifest))
			continue
		}
		failures = append(failures, c.remove(ctx, target, cluster.Name, manifest))
	}
	return failures
}

// holder is a member cluster, as far as it has to be known to take something out
// of it.
type holder interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
	Client() client.Client
}

// remove deletes the member's object if it is of this Work. Whether it is may have
// changed since we saw it, so it is deleted only as it was looked at; otherwise the
// member is asked how it is now.
func (c *controller) remove(ctx context.Context, target holder, cluster string, manifest *unstructured.Unstructured) error {
	observed, err := current(ctx, target, manifest)
	for try := 1; ; try++ {
		if absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), cluster, err)
		}
		if !work.MayDelete(observed, manifest) {
			return nil
		}
		err = removeAsSeen(ctx, target, observed)
		if !apierrors.IsConflict(err) || try == writeTries {
			break
		}
		observed, err = target.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
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
	if absent(err) {
		return nil
	}
	return err
}

// release takes our marks off the member's object, which stays.
func release(ctx context.Context, target *member.Member, manifest *unstructured.Unstructured) error {
	observed, err := target.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	if !work.MayDelete(observed, manifest) || !work.Release(observed) {
		return nil
	}
	if err := target.Client().Update(ctx, observed); err != nil && !absent(err) {
		return fmt.Errorf("releasing %s in cluster %s: %w", describe(manifest), target.Name, err)
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
	return target.GetLive(ctx, kind, key)
}
