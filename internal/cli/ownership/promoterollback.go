package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/tenancy"
)

// rollbackTimeout is the time limit for deleting the created objects.
const rollbackTimeout = 30 * time.Second

// createdObjects are the objects that this run created in the control plane, in the order
// of their creation.
type createdObjects []clusterObject

// rollBack deletes the objects in reverse order. It keeps objects that have changed since their
// creation. It also keeps a template that has a binding already, because the deletion of this
// template would delete the objects in members.
func (c createdObjects) rollBack(ctx context.Context, karmada clusterClient, messagef func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var errs []error
	for _, object := range slices.Backward(c) {
		name := describeObject(object.mapping, object.GetNamespace(), object.GetName())
		isBound, err := karmada.hasBinding(ctx, object)
		if err == nil && !isBound {
			err = karmada.deleteUnchanged(ctx, object)
		}
		switch {
		case isBound || apierrors.IsConflict(err):
			messagef("%s stays in the control plane because it is already in use", name)
		case err != nil:
			errs = append(errs, fmt.Errorf("deleting %s after the failure: %w", name, err))
		default:
			messagef("deleted %s from the control plane", name)
		}
	}
	return errors.Join(errs...)
}

// deleteUnchanged deletes an object. It returns an error if the object has changed since its
// creation.
func (c clusterClient) deleteUnchanged(ctx context.Context, object clusterObject) error {
	objects, err := c.resourceClient(object.mapping, object.GetNamespace())
	if err != nil {
		return err
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err = objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hasBinding reports whether a template has a binding, which propagates the template to members.
// Policies have no bindings.
func (c clusterClient) hasBinding(ctx context.Context, object clusterObject) (bool, error) {
	if tenancy.DefaultSkippedAPIs().Skips(object.GroupVersionKind()) {
		return false, nil
	}
	kind := schema.GroupVersionKind{Group: workv1alpha2.GroupVersion.Group, Version: workv1alpha2.GroupVersion.Version, Kind: workv1alpha2.ResourceKindResourceBinding}
	if object.GetNamespace() == "" {
		kind.Kind = workv1alpha2.ResourceKindClusterResourceBinding
	}
	mapping, err := c.mappingOf(kind)
	if err != nil {
		return false, err
	}
	get := func(name string) (binding.Object, error) {
		found, err := c.get(ctx, mapping, object.GetNamespace(), name)
		if err != nil || found == nil {
			return nil, err
		}
		bound := binding.New(object.GetNamespace() != "")
		return bound, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, bound)
	}
	bound, _, err := binding.Find(object.GroupVersionKind().GroupKind(), object.GetName(), get)
	return bound != nil, err
}
