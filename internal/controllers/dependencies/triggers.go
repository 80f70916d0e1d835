package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/loop"
)

type queue = loop.Queue[reconcile.Request]

func dependentsOf(attached binding.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, snapshot := range attached.BindingSpec().RequiredBy {
		keys = append(keys, dependency.DependentKey(snapshot))
	}
	return keys
}

// attachedTo returns the bindings of both scopes that list a dependent. The bindings are shared
// with the cache and must not be changed.
func (r *reconciler) attachedTo(ctx context.Context, dependent types.NamespacedName) ([]binding.Object, error) {
	var found []binding.Object
	for _, list := range []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}} {
		err := r.karmada.List(ctx, list, loop.BindingsByDependent.Matching(dependent.String()), client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if each, ok := item.(binding.Object); ok {
					found = append(found, each)
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("listing bindings attached to %s: %w", dependent, err)
		}
	}
	// The bindings are sorted so that the message of joined errors is stable.
	slices.SortFunc(found, func(a, b binding.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
	return found, nil
}

// newBindingHandler returns a handler that queues a changed dependent, and the dependents of an
// attached binding that another client changed.
func (r *reconciler) newBindingHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			created, ok := e.Object.(binding.Object)
			if !ok {
				return
			}
			if dependent, ok := created.(*workv1alpha2.ResourceBinding); ok && hasDependencies(dependent) {
				enqueue(q, client.ObjectKeyFromObject(dependent))
			}
			if e.IsInInitialList {
				// The dependents that the binding lists are queued, because they may have been
				// deleted while no process watched.
				enqueue(q, dependentsOf(created)...)
				return
			}
			enqueue(q, r.missedDependents(created, nil)...)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(binding.Object)
			newer, ok2 := e.ObjectNew.(binding.Object)
			if ok && ok2 {
				enqueue(q, affectedDependents(older, newer)...)
				enqueue(q, r.missedDependents(newer, dependentsOf(older))...)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			deleted, ok := e.Object.(binding.Object)
			if !ok {
				return
			}
			enqueue(q, dependentsOf(deleted)...)
			// The dependents that refer to the object are queued, because some of them may wait
			// until this binding is deleted.
			enqueue(q, r.referenceIndex.dependents(dependency.ObjectOf(deleted.BindingSpec().Resource))...)
			if binding.IsNamespaced(deleted) {
				enqueue(q, client.ObjectKeyFromObject(deleted))
			}
		},
	}
}

// missedDependents returns the dependents that a binding lists now but did not list before, without
// those that refer to the object of the binding by name. Each of them is reconciled again: it may
// have detached its bindings while this binding was written, so that it did not see this binding. A
// dependent that refers to the object by a label selector is always returned, although its
// reconcile may not be needed.
func (r *reconciler) missedDependents(attached binding.Object, before []types.NamespacedName) []types.NamespacedName {
	listed := dependentsOf(attached)
	if len(listed) == 0 {
		return nil
	}
	expected := append(r.referenceIndex.dependents(dependency.ObjectOf(attached.BindingSpec().Resource)), before...)
	return slices.DeleteFunc(listed, func(each types.NamespacedName) bool { return slices.Contains(expected, each) })
}

func enqueue(q queue, dependents ...types.NamespacedName) {
	for _, dependent := range dependents {
		q.Add(reconcile.Request{NamespacedName: dependent})
	}
}

// hasDependencies reports whether a binding that is seen for the first time must be reconciled
// as a dependent.
func hasDependencies(dependent *workv1alpha2.ResourceBinding) bool {
	return hasFinalizer(dependent) || dependent.Spec.PropagateDeps && len(dependent.Spec.Clusters) > 0
}

// affectedDependents returns the dependents that may be affected by a change of a binding.
func affectedDependents(older, newer binding.Object) []types.NamespacedName {
	var affected []types.NamespacedName
	if binding.IsNamespaced(newer) && isRelevantUpdate(older, newer) {
		affected = append(affected, client.ObjectKeyFromObject(newer))
	}
	return append(affected, changedDependents(older, newer)...)
}

func isRelevantUpdate(older, newer binding.Object) bool {
	if newer.GetDeletionTimestamp() != nil && (older.GetDeletionTimestamp() == nil ||
		len(older.GetFinalizers()) != len(newer.GetFinalizers())) {
		return true
	}
	isChanged := older.GetGeneration() != newer.GetGeneration() || binding.HaveSuspendedDependentsChanged(older, newer)
	return isChanged && (older.BindingSpec().PropagateDeps || newer.BindingSpec().PropagateDeps ||
		slices.Contains(newer.GetFinalizers(), workv1alpha2.BindingDependenciesDistributorFinalizer))
}

// changedDependents returns the dependents that a binding no longer lists, or lists differently. If
// only shared settings changed, it returns one of the dependents.
func changedDependents(older, newer binding.Object) []types.NamespacedName {
	var affected []types.NamespacedName
	for _, snapshot := range older.BindingSpec().RequiredBy {
		unchanged := false
		for _, each := range newer.BindingSpec().RequiredBy {
			unchanged = unchanged || equality.Semantic.DeepEqual(snapshot, each)
		}
		if !unchanged {
			affected = append(affected, dependency.DependentKey(snapshot))
		}
	}
	if remaining := dependentsOf(newer); len(remaining) > 0 && hasSharedChange(older, newer) {
		affected = append(affected, remaining[0])
	}
	isDeleted := older.GetDeletionTimestamp() == nil && newer.GetDeletionTimestamp() != nil
	if hasLostLabel(older, newer) || isDeleted && binding.HasSuspendedDependents(newer) {
		affected = append(affected, dependentsOf(newer)...)
	}
	return affected
}

func hasSharedChange(older, newer binding.Object) bool {
	oldSpec, newSpec := older.BindingSpec(), newer.BindingSpec()
	return dependency.IsClaimed(older) != dependency.IsClaimed(newer) ||
		(oldSpec.Placement == nil) != (newSpec.Placement == nil) ||
		oldSpec.ConflictResolution != newSpec.ConflictResolution || oldSpec.Resource != newSpec.Resource ||
		!equality.Semantic.DeepEqual(oldSpec.PreserveResourcesOnDeletion, newSpec.PreserveResourcesOnDeletion) ||
		!equality.Semantic.DeepEqual(metav1.GetControllerOf(older), metav1.GetControllerOf(newer))
}

func hasLostLabel(older, newer binding.Object) bool {
	for label, value := range older.GetLabels() {
		if strings.HasPrefix(label, workv1alpha2.DependedByLabelPrefix) && newer.GetLabels()[label] != value {
			return true
		}
	}
	return false
}

// referenceIndex is the index of references. The reconciles fill the index, and the watches read
// it.
type referenceIndex struct {
	mu    sync.RWMutex
	index *dependency.Index
}

func newReferenceIndex() *referenceIndex { return &referenceIndex{index: dependency.NewIndex()} }

// put replaces the references of a dependent and reports whether the references contain a new kind.
func (r *referenceIndex) put(dependent types.NamespacedName, references []dependency.Reference) (newKind bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.index.Put(dependent, references)
}

func (r *referenceIndex) kinds() []schema.GroupVersionKind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.index.Kinds()
}

func (r *referenceIndex) dependents(object dependency.ObjectID, labels ...map[string]string) []types.NamespacedName {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.index.Dependents(object, labels...)
}
