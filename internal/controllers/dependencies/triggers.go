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
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// requiredByField of a binding is the name of each dependent that it lists.
const requiredByField = Name + "/required-by"

func index(indexer client.FieldIndexer) error {
	for _, of := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := indexer.IndexField(context.Background(), of, requiredByField, requiredBy); err != nil {
			return fmt.Errorf("indexing bindings by %s: %w", requiredByField, err)
		}
	}
	return nil
}

func requiredBy(of client.Object) []string {
	bound, ok := of.(binding.Object)
	if !ok {
		return nil
	}
	var names []string
	for _, dependent := range dependentsOf(bound) {
		names = append(names, dependent.String())
	}
	return names
}

func dependentsOf(attached binding.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, snapshot := range attached.BindingSpec().RequiredBy {
		keys = append(keys, dependency.KeyOf(snapshot))
	}
	return keys
}

// attachedTo are the bindings of both scopes that list a dependent. They are
// shared with the cache and must not be changed.
func (r *reconciler) attachedTo(ctx context.Context, dependent types.NamespacedName) ([]binding.Object, error) {
	var found []binding.Object
	for _, list := range []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}} {
		err := r.karmada.List(ctx, list, client.MatchingFields{requiredByField: dependent.String()}, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if each, ok := item.(binding.Object); ok {
					found = append(found, each)
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("listing what follows binding %s: %w", dependent, err)
		}
	}
	// In one order, so that failures make the same message each time.
	slices.SortFunc(found, func(a, b binding.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
	return found, nil
}

// onBinding looks at a dependent when it changes, and at the dependents of an
// attached binding when somebody tampers with it.
func (r *reconciler) onBinding() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			created, ok := e.Object.(binding.Object)
			if !ok {
				return
			}
			if dependent, ok := created.(*workv1alpha2.ResourceBinding); ok && appeared(dependent) {
				push(q, client.ObjectKeyFromObject(dependent))
			}
			if e.IsInInitialList {
				// One of them may have gone while nobody looked.
				push(q, dependentsOf(created)...)
				return
			}
			push(q, r.belated(created, nil)...)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(binding.Object)
			newer, ok2 := e.ObjectNew.(binding.Object)
			if ok && ok2 {
				push(q, updated(older, newer)...)
				push(q, r.belated(newer, dependentsOf(older))...)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			deleted, ok := e.Object.(binding.Object)
			if !ok {
				return
			}
			push(q, dependentsOf(deleted)...)
			// Some may have waited for it to go.
			push(q, r.needs.dependents(dependency.ThingOf(deleted.BindingSpec().Resource))...)
			if binding.Namespaced(deleted) {
				push(q, client.ObjectKeyFromObject(deleted))
			}
		},
	}
}

// belated are the dependents that a binding lists now and did not before, and that
// do not need its object by name. One that let go of everything while that was
// written did not see it, and must look once more; what is selected by labels costs
// a look too many.
func (r *reconciler) belated(attached binding.Object, before []types.NamespacedName) []types.NamespacedName {
	listed := dependentsOf(attached)
	if len(listed) == 0 {
		return nil
	}
	expected := append(r.needs.dependents(dependency.ThingOf(attached.BindingSpec().Resource)), before...)
	return slices.DeleteFunc(listed, func(each types.NamespacedName) bool { return slices.Contains(expected, each) })
}

func push(q queue, dependents ...types.NamespacedName) {
	for _, dependent := range dependents {
		q.Add(reconcile.Request{NamespacedName: dependent})
	}
}

// appeared reports whether a binding that is seen for the first time is one to
// work on.
func appeared(dependent *workv1alpha2.ResourceBinding) bool {
	return marked(dependent) || dependent.Spec.PropagateDeps && len(dependent.Spec.Clusters) > 0
}

// updated are the dependents that a change of a binding concerns.
func updated(older, newer binding.Object) []types.NamespacedName {
	var concerned []types.NamespacedName
	if binding.Namespaced(newer) && changedDependent(older, newer) {
		concerned = append(concerned, client.ObjectKeyFromObject(newer))
	}
	return append(concerned, disturbed(older, newer)...)
}

func changedDependent(older, newer binding.Object) bool {
	if older.GetDeletionTimestamp() == nil && newer.GetDeletionTimestamp() != nil {
		return true
	}
	return older.GetGeneration() != newer.GetGeneration() &&
		(older.BindingSpec().PropagateDeps || newer.BindingSpec().PropagateDeps)
}

// disturbed are the dependents that a binding lists no longer, or differently.
// When what they have in common changed, one of them is enough.
func disturbed(older, newer binding.Object) []types.NamespacedName {
	var concerned []types.NamespacedName
	for _, snapshot := range older.BindingSpec().RequiredBy {
		kept := false
		for _, each := range newer.BindingSpec().RequiredBy {
			kept = kept || equality.Semantic.DeepEqual(snapshot, each)
		}
		if !kept {
			concerned = append(concerned, dependency.KeyOf(snapshot))
		}
	}
	if rest := dependentsOf(newer); len(rest) > 0 && commonChanged(older, newer) {
		concerned = append(concerned, rest[0])
	}
	if lostMark(older, newer) {
		concerned = append(concerned, dependentsOf(newer)...)
	}
	return concerned
}

func commonChanged(older, newer binding.Object) bool {
	was, is := older.BindingSpec(), newer.BindingSpec()
	return dependency.Claimed(older) != dependency.Claimed(newer) ||
		(was.Placement == nil) != (is.Placement == nil) ||
		was.ConflictResolution != is.ConflictResolution || was.Resource != is.Resource ||
		!equality.Semantic.DeepEqual(was.PreserveResourcesOnDeletion, is.PreserveResourcesOnDeletion) ||
		!equality.Semantic.DeepEqual(metav1.GetControllerOf(older), metav1.GetControllerOf(newer))
}

func lostMark(older, newer binding.Object) bool {
	for label, value := range older.GetLabels() {
		if strings.HasPrefix(label, workv1alpha2.DependedByLabelPrefix) && newer.GetLabels()[label] != value {
			return true
		}
	}
	return false
}

// needs is the index of references, shared by the passes that fill it and the
// watches that read it.
type needs struct {
	mu    sync.RWMutex
	index *dependency.Index
}

func newNeeds() *needs { return &needs{index: dependency.NewIndex()} }

// put replaces what a dependent needs and reports whether a kind is new.
func (n *needs) put(dependent types.NamespacedName, references []dependency.Reference) (appeared bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.index.Put(dependent, references)
}

func (n *needs) kinds() []schema.GroupVersionKind {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.index.Kinds()
}

func (n *needs) dependents(thing dependency.Thing, marks ...map[string]string) []types.NamespacedName {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.index.Dependents(thing, marks...)
}
