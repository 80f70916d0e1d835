package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/reach"
)

// undoLimit is how long it may take to delete what was created.
const undoLimit = 30 * time.Second

// creations are the objects that this run made in the control plane, in their order.
type creations []found

// undo deletes them, the last one first. An object that somebody has changed since,
// or that is on its way to members already, stays: deleting its template would
// delete what runs there.
func (c creations) undo(ctx context.Context, karmada side, tell func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	var errs []error
	for _, made := range slices.Backward(c) {
		name := title(made.mapping, made.GetNamespace(), made.GetName())
		bound, err := karmada.bound(ctx, made)
		if err == nil && !bound {
			err = karmada.remove(ctx, made)
		}
		switch {
		case bound || apierrors.IsConflict(err):
			tell("%s stays in the control plane: it is in use already", name)
		case err != nil:
			errs = append(errs, fmt.Errorf("deleting %s, which was created in vain: %w", name, err))
		default:
			tell("deleted %s from the control plane again", name)
		}
	}
	return errors.Join(errs...)
}

// remove deletes an object as it was created, not one that has changed since.
func (s side) remove(ctx context.Context, made found) error {
	objects, err := s.at(made.mapping, made.GetNamespace())
	if err != nil {
		return err
	}
	uid, version := made.GetUID(), made.GetResourceVersion()
	err = objects.Delete(ctx, made.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bound tells whether a template has a binding, which sends it to members. Policies
// have none.
func (s side) bound(ctx context.Context, made found) (bool, error) {
	if reach.DefaultSkippedAPIs().Skips(made.GroupVersionKind()) {
		return false, nil
	}
	kind := schema.GroupVersionKind{Group: workv1alpha2.GroupVersion.Group, Version: workv1alpha2.GroupVersion.Version, Kind: workv1alpha2.ResourceKindResourceBinding}
	if made.GetNamespace() == "" {
		kind.Kind = workv1alpha2.ResourceKindClusterResourceBinding
	}
	mapping, err := s.mappingOf(kind)
	if err != nil {
		return false, err
	}
	return s.holds(ctx, mapping, made.GetNamespace(), binding.Name(made.GetName(), made.GetKind()))
}

func (s side) holds(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (bool, error) {
	object, err := s.get(ctx, mapping, namespace, name)
	return object != nil, err
}
