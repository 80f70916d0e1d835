package detector

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// waiting holds the templates that no policy wanted, filed as policies ask for
// them: by kind, then namespace, then name. It knows the labels that they had when
// they were looked at: one that got others is about to be looked at again.
type waiting struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]map[string]names
}

// names are the templates of a namespace by name.
type names map[string]waiter

// waiter is a template that waits.
type waiter struct {
	labels labels.Set
	// since is when the template was first found to wait.
	since time.Time
}

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
	since := time.Now()
	if known, ok := namespaces[r.key.Namespace][r.key.Name]; ok {
		since = known.since
	}
	namespaces[r.key.Namespace][r.key.Name] = waiter{labels: of, since: since}
}

// since returns when a template was first found to wait; zero when it does not.
func (w *waiting) since(r reference) time.Time {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.kinds[r.kind][r.key.Namespace][r.key.Name].since
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

// area is a set of templates: those of a kind, of one namespace unless that is
// empty, of one name unless that is empty, and with some labels unless that is
// nil.
type area struct {
	kind            schema.GroupVersionKind
	namespace, name string
	labels          labels.Selector
}

// reaches is where the selectors of a policy point. A PropagationPolicy never
// leaves its namespace, and a selector that cannot be understood points nowhere.
func reaches(of policy.Object) []area {
	var all []area
	for i := range of.PropagationSpec().ResourceSelectors {
		if to, ok := reachOf(of, &of.PropagationSpec().ResourceSelectors[i]); ok {
			all = append(all, to)
		}
	}
	return all
}

func reachOf(of policy.Object, selector *policyv1alpha1.ResourceSelector) (area, bool) {
	namespace := selector.Namespace
	if !policy.IsCluster(of) {
		if namespace != "" && namespace != of.GetNamespace() {
			return area{}, false
		}
		namespace = of.GetNamespace()
	}
	to := area{
		kind:      schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind),
		namespace: namespace, name: selector.Name,
	}
	if selector.Name == "" && selector.LabelSelector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
		if err != nil {
			return area{}, false
		}
		to.labels = compiled
	}
	return to, true
}

// within returns the waiting templates that an area holds, in no order.
func (w *waiting) within(of area) []reference {
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

func collect(found []reference, of area, namespace string, held names) []reference {
	if of.name != "" {
		if _, ok := held[of.name]; ok {
			found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: of.name}})
		}
		return found
	}
	for name, has := range held {
		if of.labels == nil || of.labels.Matches(has.labels) {
			found = append(found, reference{of.kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	return found
}
