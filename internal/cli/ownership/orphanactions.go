package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/work"
)

// orphanAction is an action on orphans.
type orphanAction struct {
	verb, doneText string
	// appliesTo reports whether the action applies to the orphan.
	appliesTo func(*orphan) bool
	// needsAllWorks is true if the action must not run when Works may be missing.
	needsAllWorks bool
	run           func(context.Context, dynamic.ResourceInterface, *orphan) error
}

// selectedAction returns the action that the flags select. It returns nil if orphans are only
// listed.
func (o *orphanOptions) selectedAction() *orphanAction {
	unwanted := func(one *orphan) bool { return !one.isWanted }
	switch {
	case o.adopt:
		return &orphanAction{"adopt", "adopted", func(one *orphan) bool { return one.isWanted }, false, adoptOrphan}
	case o.release:
		return &orphanAction{"release", "released", unwanted, true, releaseOrphan}
	case o.remove:
		return &orphanAction{"delete", "deleted", func(one *orphan) bool { return unwanted(one) && !one.containsOtherObjects() }, true,
			deleteOrphan}
	}
	return nil
}

// containsOtherObjects reports whether the deletion of the orphan would delete other objects too.
func (one *orphan) containsOtherObjects() bool {
	return work.DeletionCascades(one.object.GroupVersionKind().GroupKind())
}

// rejectUnsettled returns an error if the action must not run because Works of the cluster may be missing. It then sets the
// result "refused" for the orphans to which the action applies.
func (c *clusterOrphans) rejectUnsettled(action *orphanAction) error {
	if action == nil || !action.needsAllWorks || c.unsettledErr == nil {
		return nil
	}
	refused := false
	for i := range c.orphans {
		if one := &c.orphans[i]; action.appliesTo(one) {
			one.result, refused = "refused", true
		}
	}
	if !refused {
		return nil
	}
	return fmt.Errorf("nothing can be %s: %w", action.doneText, c.unsettledErr)
}

// runActionInAll runs the action in all clusters, and updates results and errs.
func (o *orphanOptions) runActionInAll(ctx context.Context, targets []command.Target, results []clusterOrphans, errs []error,
	action *orphanAction) {
	found := map[string]clusterOrphans{}
	for _, a := range results {
		found[a.cluster] = a
	}
	treated, failures := command.QueryAll(ctx, targets, o.timeout, func(ctx context.Context, target command.Target) (clusterOrphans, error) {
		a := found[target.Cluster]
		// A query continues after its time limit, so it must work on a copy.
		a.orphans = slices.Clone(a.orphans)
		err := a.runAction(ctx, action)
		return a, err
	})
	for i := range targets {
		results[i], errs[i] = treated[i], errors.Join(errs[i], failures[i])
	}
}

// runAction runs the action on the orphans of a cluster to which it applies, except for orphans
// that were refused. If the action fails for one orphan, it continues with the others.
func (c *clusterOrphans) runAction(ctx context.Context, action *orphanAction) error {
	var failures []error
	for i := range c.orphans {
		one := &c.orphans[i]
		if !action.appliesTo(one) || one.result != "" {
			continue
		}
		resource := c.member.Resource(one.resource).Namespace(one.object.GetNamespace())
		if err := action.run(ctx, resource, one); err != nil {
			one.result = "failed"
			failures = append(failures, fmt.Errorf("%s of %s: %w", action.verb, one.describe(), err))
			continue
		}
		one.result = action.doneText
	}
	return errors.Join(failures...)
}

func deleteOrphan(ctx context.Context, resource dynamic.ResourceInterface, one *orphan) error {
	uid, version, background := one.object.GetUID(), one.object.GetResourceVersion(), metav1.DeletePropagationBackground
	err := resource.Delete(ctx, one.object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func adoptOrphan(ctx context.Context, resource dynamic.ResourceInterface, one *orphan) error {
	return updateUnchanged(ctx, resource, one, func(object *unstructured.Unstructured) { work.AdoptObject(object, one.claim) })
}

func releaseOrphan(ctx context.Context, resource dynamic.ResourceInterface, one *orphan) error {
	return updateUnchanged(ctx, resource, one, func(object *unstructured.Unstructured) { work.Release(object) })
}

// updateUnchanged updates the orphan's object if it has not changed since it was found. The update contains the resource
// version, so the server rejects the update after any other change.
func updateUnchanged(ctx context.Context, resource dynamic.ResourceInterface, one *orphan, change func(*unstructured.Unstructured)) error {
	object, err := resource.Get(ctx, one.object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if object.GetUID() != one.object.GetUID() || object.GetResourceVersion() != one.object.GetResourceVersion() {
		return errChanged
	}
	change(object)
	_, err = resource.Update(ctx, object, metav1.UpdateOptions{FieldManager: "karmadactl"})
	return err
}

var errChanged = errors.New("the object changed after it was found: run the command again")
