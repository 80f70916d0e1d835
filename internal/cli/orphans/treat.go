package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"karmada.io/karmada/internal/cli/place"
	"karmada.io/karmada/internal/domain/work"
)

// action is what may be done to orphans.
type action struct {
	verb, done string
	// fits reports whether the action is for this orphan.
	fits func(*orphan) bool
	// needsAllWorks is true if the action is wrong for an object whose Work is missing.
	needsAllWorks bool
	do            func(context.Context, dynamic.ResourceInterface, *orphan) error
}

// action returns what the flags say; nil is to list only.
func (o *options) action() *action {
	unwanted := func(one *orphan) bool { return !one.wanted }
	switch {
	case o.adopt:
		return &action{"adopt", "adopted", func(one *orphan) bool { return one.wanted }, false, adopt}
	case o.release:
		return &action{"release", "released", unwanted, true, release}
	case o.remove:
		return &action{"delete", "deleted", func(one *orphan) bool { return unwanted(one) && !one.containsOthers() }, true, remove}
	}
	return nil
}

// containsOthers reports whether objects of others would be deleted with the orphan.
func (one *orphan) containsOthers() bool {
	return work.ContainsOthers(one.object.GroupVersionKind().GroupKind())
}

// refuse marks the orphans that the action is for as refused if Works of the cluster may
// be missing, and returns why.
func (a *answer) refuse(action *action) error {
	if action == nil || !action.needsAllWorks || a.unsettled == nil {
		return nil
	}
	refused := false
	for i := range a.orphans {
		if one := &a.orphans[i]; action.fits(one) {
			one.result, refused = "refused", true
		}
	}
	if !refused {
		return nil
	}
	return fmt.Errorf("nothing can be %s: %w", action.done, a.unsettled)
}

// treatAll does the action in all clusters, and puts what came of it into answers and errs.
func (o *options) treatAll(ctx context.Context, places []place.Place, answers []answer, errs []error, action *action) {
	found := map[string]answer{}
	for _, a := range answers {
		found[a.cluster] = a
	}
	treated, failures := place.AskAll(ctx, places, o.patience, func(ctx context.Context, where place.Place) (answer, error) {
		a := found[where.Cluster]
		// What comes after the time limit is dropped.
		a.orphans = slices.Clone(a.orphans)
		err := a.treat(ctx, action)
		return a, err
	})
	for i := range places {
		answers[i], errs[i] = treated[i], errors.Join(errs[i], failures[i])
	}
}

// treat does the action to the orphans of a cluster that it is for and that were not
// refused. The failure of one does not stop the others.
func (a *answer) treat(ctx context.Context, action *action) error {
	var failures []error
	for i := range a.orphans {
		one := &a.orphans[i]
		if !action.fits(one) || one.result != "" {
			continue
		}
		side := a.member.Resource(one.resource).Namespace(one.object.GetNamespace())
		if err := action.do(ctx, side, one); err != nil {
			one.result = "failed"
			failures = append(failures, fmt.Errorf("%s of %s: %w", action.verb, one.title(), err))
			continue
		}
		one.result = action.done
	}
	return errors.Join(failures...)
}

func remove(ctx context.Context, side dynamic.ResourceInterface, one *orphan) error {
	uid, version, background := one.object.GetUID(), one.object.GetResourceVersion(), metav1.DeletePropagationBackground
	err := side.Delete(ctx, one.object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func adopt(ctx context.Context, side dynamic.ResourceInterface, one *orphan) error {
	return update(ctx, side, one, func(object *unstructured.Unstructured) { work.Adopt(object, one.claim) })
}

func release(ctx context.Context, side dynamic.ResourceInterface, one *orphan) error {
	return update(ctx, side, one, func(object *unstructured.Unstructured) { work.Release(object) })
}

// update changes an object if it is still the one that was found. What is written has the
// version that was found, so that the server refuses it after any change.
func update(ctx context.Context, side dynamic.ResourceInterface, one *orphan, change func(*unstructured.Unstructured)) error {
	object, err := side.Get(ctx, one.object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if object.GetUID() != one.object.GetUID() || object.GetResourceVersion() != one.object.GetResourceVersion() {
		return errChanged
	}
	change(object)
	_, err = side.Update(ctx, object, metav1.UpdateOptions{FieldManager: "karmadactl"})
	return err
}

var errChanged = errors.New("the object changed after it was found: run the command again")
