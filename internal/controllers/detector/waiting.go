package detector

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// waiting holds the templates that no policy wanted, filed as policies ask for
// them: by kind, then namespace, then name. It knows the labels that they had when
// they were looked at: one that got others is about to be looked at again.
type waiting struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]map[string]names
}

// names are the labels of templates by name.
type names map[string]labels.Set

func newWaiting() *waiting {
	return &waiting{kinds: map[schema.GroupVersionKind]map[string]names{}}
}

func (w *waiting) add(r reference, of map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.kinds[r.kind]
	if namespaces == nil {
		namespaces = map[string]names{}
		w.kinds[r.kind] = namespaces
	}
	if namespaces[r.key.Namespace] == nil {
		namespaces[r.key.Namespace] = names{}
	}
	namespaces[r.key.Namespace][r.key.Name] = of
}

func (w *waiting) remove(r reference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.kinds[r.kind]
	delete(namespaces[r.key.Namespace], r.key.Name)
	if len(namespaces[r.key.Namespace]) == 0 {
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
// empty, of one name unless that is empty, and with some labels unless that is
// nil.
type reach struct {
	kind            schema.GroupVersionKind
	namespace, name string
	labels          labels.Selector
}

// reaches is where the selectors of a policy point. A PropagationPolicy never
// leaves its namespace, and a selector that cannot be understood points nowhere.
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
		to := reach{
			kind:      schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind),
			namespace: namespace, name: selector.Name,
		}
		if selector.Name == "" && selector.LabelSelector != nil {
			compiled, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
			if err != nil {
				continue
			}
			to.labels = compiled
		}
		all = append(all, to)
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
	for namespace, held := range namespaces {
		found = collect(found, of, namespace, held)
	}
	return found
}

func collect(found []reference, of reach, namespace string, held names) []reference {
	if of.name != "" {
		if _, ok := held[of.name]; ok {
			found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: of.name}})
		}
		return found
	}
	for name, has := range held {
		if of.labels == nil || of.labels.Matches(has) {
			found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	return found
}
