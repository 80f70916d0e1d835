package dependencies

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// attach attaches the binding of one object to a dependent, and reports whether it wrote anything.
func (r *reconciler) attach(ctx context.Context, dependent *workv1alpha2.ResourceBinding,
	object *unstructured.Unstructured) (written bool, err error) {
	stored, freeName, err := loop.FindTemplateBinding(ctx, r.karmada, object.GroupVersionKind().GroupKind(),
		client.ObjectKeyFromObject(object))
	switch {
	case err != nil:
		return false, err
	case object.GetDeletionTimestamp() != nil:
		// A stored binding is deleted together with the object. A new binding would delay the
		// foreground deletion of the object until the binding is deleted.
		return false, nil
	case stored == nil:
		return r.createAttached(ctx, dependent, object, freeName)
	case stored.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("binding %s: %w", client.ObjectKeyFromObject(stored), errTerminating)
	}
	peers, err := r.otherDependents(ctx, stored, client.ObjectKeyFromObject(dependent))
	if err != nil {
		return false, err
	}
	desired := binding.Copy(stored)
	if err := dependency.Attach(desired, object, dependent, peers, time.Now()); err != nil {
		return false, err
	}
	if written, err = patch.Object(ctx, r.karmada, stored, desired); err != nil {
		return false, loop.StaleIfNotFound(err)
	}
	r.recordConflictEvent(desired, append(peers.Existing, dependent), written)
	return written, nil
}

// createAttached creates the binding of an object that has no binding. It creates the complete
// binding in one request.
func (r *reconciler) createAttached(ctx context.Context, dependent *workv1alpha2.ResourceBinding, object *unstructured.Unstructured,
	name string) (written bool, err error) {
	created := binding.New(object.GetNamespace() != "")
	created.SetName(name)
	if err := dependency.Attach(created, object, dependent, dependency.OtherDependents{}, time.Now()); err != nil {
		return false, err
	}
	labels := maps.Clone(created.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[binding.PermanentIDLabel(created)] = uuid.NewString()
	created.SetLabels(labels)
	err = r.karmada.Create(ctx, created)
	if loop.IsNamespaceTerminating(err) {
		return false, nil
	}
	if err != nil {
		return false, loop.StaleIfNotFound(fmt.Errorf("creating binding %s: %w", client.ObjectKeyFromObject(created), err))
	}
	return true, nil
}

// otherDependents returns the dependents that a binding lists, except one. If the cache does not
// contain a dependent, it reads the dependent from the API server, because only the response of the
// API server proves that the dependent does not exist.
func (r *reconciler) otherDependents(ctx context.Context, attached binding.Object,
	except types.NamespacedName) (dependency.OtherDependents, error) {
	peers := dependency.OtherDependents{Deleted: sets.New[types.NamespacedName]()}
	for _, snapshot := range attached.BindingSpec().RequiredBy {
		key := dependency.DependentKey(snapshot)
		if key == except {
			continue
		}
		peer, err := r.findDependent(ctx, key)
		if err != nil {
			return dependency.OtherDependents{}, err
		}
		if peer == nil {
			peers.Deleted.Insert(key)
			continue
		}
		peers.Existing = append(peers.Existing, peer)
	}
	return peers, nil
}

// findDependent returns the dependent with a name, or nil if the dependent does not exist.
func (r *reconciler) findDependent(ctx context.Context, key types.NamespacedName) (*workv1alpha2.ResourceBinding, error) {
	peer := &workv1alpha2.ResourceBinding{}
	err := r.karmada.Get(ctx, key, peer, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = r.karmadaReader.Get(ctx, key, peer)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	return peer, nil
}
