package orphans

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"karmada.io/karmada/internal/domain/work"
)

// action is what may be done to orphans.
type action struct {
	verb, done string
	// fits reports whether the action is for this orphan.
	fits func(*orphan) bool
	do   func(context.Context, dynamic.ResourceInterface, *orphan) error
}

// action returns what the flags say; nil is to list only.
func (o *options) action() *action {
	unwanted := func(one *orphan) bool { return !one.wanted }
	switch {
	case o.adopt:
		return &action{"adopt", "adopted", func(one *orphan) bool { return one.wanted }, adopt}
	case o.release:
		return &action{"release", "released", unwanted, release}
	case o.remove:
		return &action{"delete", "deleted", unwanted, remove}
	}
	return nil
}

// treat does the action to the orphans of a cluster that it is for. The failure of one
// does not stop the others.
func (a *answer) treat(ctx context.Context, action *action) error {
	var failures []error
	for i := range a.orphans {
		one := &a.orphans[i]
		if !action.fits(one) {
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
