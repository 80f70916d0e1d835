package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// waiting holds the templates that no policy wanted, filed as policies ask for
// them: by kind, then namespace, then name.
type waiting struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]map[string]sets.Set[string]
}

func newWaiting() *waiting {
	return &waiting{kinds: map[schema.GroupVersionKind]map[string]sets.Set[string]{}}
}

func (w *waiting) add(r reference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.kinds[r.kind]
	if namespaces == nil {
		namespaces = map[string]sets.Set[string]{}
		w.kinds[r.kind] = namespaces
	}
	if namespaces[r.key.Namespace] == nil {
		namespaces[r.key.Namespace] = sets.New[string]()
	}
	namespaces[r.key.Namespace].Insert(r.key.Name)
}

func (w *waiting) remove(r reference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.kinds[r.kind]
	names := namespaces[r.key.Namespace]
	names.Delete(r.key.Name)
	if names.Len() == 0 {
		delete(namespaces, r.key.Namespace)
	}
	if len(namespaces) == 0 {
		delete(w.kinds, r.kind)
	}
}

// dropKind forgets all templates of a kind.
func (w *waiting) dropKind(kind schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kinds, kind)
}

// reach is a set of templates: those of a kind, of one namespace unless that is
// empty, and of one name unless that is empty.
type reach struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// reaches is where the selectors of a policy point, label selectors left aside.
// A PropagationPolicy never leaves its namespace.
func reaches(of policy.Object) []reach {
	var all []reach
	for _, selector := range of.PropagationSpec().ResourceSelectors {
		namespace := selector.Namespace
		if !policy.IsCluster(of) {
			if namespace != "" && namespace != of.GetNamespace() {
				continue
			}
			namespace = of.GetNamespace()
		}
		all = append(all, reach{
			kind:      schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind),
			namespace: namespace, name: selector.Name,
		})
	}
	return all
}

// within returns the waiting templates that a reach holds, in no order.
func (w *waiting) within(of reach) []reference {
	w.mu.RLock()
	defer w.mu.RUnlock()
	namespaces := w.kinds[of.kind]
	if of.namespace != "" {
		return collect(nil, of, of.namespace, namespaces[of.namespace])
	}
	var found []reference
	for namespace, names := range namespaces {
		found = collect(found, of, namespace, names)
	}
	return found
}

func collect(found []reference, of reach, namespace string, names sets.Set[string]) []reference {
	if of.name != "" {
		if names.Has(of.name) {
			found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: of.name}})
		}
		return found
	}
	for name := range names {
		found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return found
}
