package execution

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/work"
)

// withdraw takes the objects of a Work that is being deleted out of the member,
// or lets go of them, and then lets the Work go.
func (c *controller) withdraw(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	if !controllerutil.ContainsFinalizer(stored, workv1alpha1.ExecutionFinalizer) || c.applied.isReleased(stored) {
		return nil
	}
	if err := c.withdrawAll(ctx, cluster, stored); err != nil {
		c.events.Failed(stored, workv1alpha1.EventReasonSyncFailed, err)
		return err
	}
	released := stored.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
	if _, err := patch.Object(ctx, c.karmada, stored, released); client.IgnoreNotFound(err) != nil {
		return err
	}
	c.applied.release(stored)
	return nil
}

func (c *controller) withdrawAll(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	if !ready(cluster) {
		if cluster.DeletionTimestamp != nil {
			// The cluster goes and cannot be asked: its objects stay where they are.
			return nil
		}
		return fmt.Errorf("cluster(%s) %w", cluster.Name, errNotReady)
	}
	target, err := c.members.For(ctx, cluster)
	if err != nil {
		return err
	}
	preserve := stored.Spec.PreserveResourcesOnDeletion != nil && *stored.Spec.PreserveResourcesOnDeletion
	var failures []error
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			// What cannot be read was never created.
			continue
		}
		if preserve {
			failures = append(failures, release(ctx, target, manifest))
			continue
		}
		failures = append(failures, remove(ctx, target, manifest))
	}
	return errors.Join(failures...)
}

// remove deletes the member's object if it is of this Work. The precondition
// keeps it from hitting another object that took the name meanwhile.
func remove(ctx context.Context, target *member.Member, manifest *unstructured.Unstructured) error {
	observed, err := current(ctx, target, manifest)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	if !work.MayDelete(observed, manifest) {
		return nil
	}
	uid := observed.GetUID()
	err = target.Client().Delete(ctx, observed,
		client.PropagationPolicy("Background"), client.Preconditions{UID: &uid})
	if err != nil && !absent(err) {
		return fmt.Errorf("deleting %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	return nil
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
func current(ctx context.Context, target *member.Member, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, key := manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest)
	if observed, cached, err := target.Get(ctx, kind, key); err == nil && cached {
		return observed.DeepCopy(), nil
	}
	return target.GetLive(ctx, kind, key)
}
