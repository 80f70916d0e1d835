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

// waitingTemplates holds the templates that no policy claims, by kind, then namespace, then
// name, as policies select them. It keeps the labels from the last reconcile. A template whose
// labels change is reconciled again.
type waitingTemplates struct {
	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]map[string]waitingByName
}

// waitingByName holds the waiting templates of a namespace by name.
type waitingByName map[string]waitingTemplate

// waitingTemplate is the entry of one template.
type waitingTemplate struct {
	labels labels.Set
	// since is when the template was first found to wait.
	since time.Time
}

func newWaitingTemplates() *waitingTemplates {
	return &waitingTemplates{byKind: map[schema.GroupVersionKind]map[string]waitingByName{}}
}

func (w *waitingTemplates) add(r templateRef, templateLabels map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.byKind[r.kind]
	if namespaces == nil {
		namespaces = map[string]waitingByName{}
		w.byKind[r.kind] = namespaces
	}
	if namespaces[r.key.Namespace] == nil {
		namespaces[r.key.Namespace] = waitingByName{}
	}
	since := time.Now()
	if known, ok := namespaces[r.key.Namespace][r.key.Name]; ok {
		since = known.since
	}
	namespaces[r.key.Namespace][r.key.Name] = waitingTemplate{labels: templateLabels, since: since}
}

// waitingSince returns when a template was first found to wait, or zero when it does not wait.
func (w *waitingTemplates) waitingSince(r templateRef) time.Time {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.byKind[r.kind][r.key.Namespace][r.key.Name].since
}

func (w *waitingTemplates) remove(r templateRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespaces := w.byKind[r.kind]
	delete(namespaces[r.key.Namespace], r.key.Name)
	if len(namespaces[r.key.Namespace]) == 0 {
		delete(namespaces, r.key.Namespace)
	}
	if len(namespaces) == 0 {
		delete(w.byKind, r.kind)
	}
}

// deleteKind removes all templates of a kind.
func (w *waitingTemplates) deleteKind(kind schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKind, kind)
}

// templateFilter selects templates of a kind. An empty namespace or name, or nil labels,
// select all.
type templateFilter struct {
	kind            schema.GroupVersionKind
	namespace, name string
	labels          labels.Selector
}

// filtersOf returns the filters of a policy's selectors. A PropagationPolicy selects in its
// own namespace only, and an invalid selector selects nothing.
func filtersOf(policyObject policy.Object) []templateFilter {
	var all []templateFilter
	for i := range policyObject.PropagationSpec().ResourceSelectors {
		if filter, ok := filterOf(policyObject, &policyObject.PropagationSpec().ResourceSelectors[i]); ok {
			all = append(all, filter)
		}
	}
	return all
}

func filterOf(policyObject policy.Object, selector *policyv1alpha1.ResourceSelector) (templateFilter, bool) {
	namespace := selector.Namespace
	if !policy.IsCluster(policyObject) {
		if namespace != "" && namespace != policyObject.GetNamespace() {
			return templateFilter{}, false
		}
		namespace = policyObject.GetNamespace()
	}
	filter := templateFilter{
		kind:      schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind),
		namespace: namespace, name: selector.Name,
	}
	if selector.Name == "" && selector.LabelSelector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
		if err != nil {
			return templateFilter{}, false
		}
		filter.labels = compiled
	}
	return filter, true
}

// matching returns the waiting templates that match the filter, in no order.
func (w *waitingTemplates) matching(filter templateFilter) []templateRef {
	w.mu.RLock()
	defer w.mu.RUnlock()
	namespaces := w.byKind[filter.kind]
	if filter.namespace != "" {
		return appendMatches(nil, filter, filter.namespace, namespaces[filter.namespace])
	}
	var found []templateRef
	for namespace, waiting := range namespaces {
		found = appendMatches(found, filter, namespace, waiting)
	}
	return found
}

func appendMatches(found []templateRef, filter templateFilter, namespace string, waiting waitingByName) []templateRef {
	if filter.name != "" {
		if _, ok := waiting[filter.name]; ok {
			found = append(found, templateRef{filter.kind, types.NamespacedName{Namespace: namespace, Name: filter.name}})
		}
		return found
	}
	for name, entry := range waiting {
		if filter.labels == nil || filter.labels.Matches(entry.labels) {
			found = append(found, templateRef{filter.kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	return found
}
