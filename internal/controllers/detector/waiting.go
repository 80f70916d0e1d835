package detector

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// waitingTemplates contains the templates that no policy claims. It is kept in memory only, because
// every template is reconciled and recorded again after a restart. Templates are grouped by kind,
// namespace and name, because policies select them by these fields. The labels of a template are
// those of its last reconcile, which is enough because a template whose labels change is reconciled
// again.
type waitingTemplates struct {
	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]map[string]waitingByName
}

// waitingByName contains the waiting templates of one namespace by name.
type waitingByName map[string]waitingTemplate

// waitingTemplate is the record of one template.
type waitingTemplate struct {
	labels labels.Set
	// since is the time at which the template was first found to wait.
	since time.Time
}

// newWaitingTemplates returns an empty record.
func newWaitingTemplates() *waitingTemplates {
	return &waitingTemplates{byKind: map[schema.GroupVersionKind]map[string]waitingByName{}}
}

// add records a template with its labels. If the template is already recorded, its time is kept.
func (t *waitingTemplates) add(r templateRef, templateLabels map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespaces := t.byKind[r.Kind]
	if namespaces == nil {
		namespaces = map[string]waitingByName{}
		t.byKind[r.Kind] = namespaces
	}
	if namespaces[r.Key.Namespace] == nil {
		namespaces[r.Key.Namespace] = waitingByName{}
	}
	since := time.Now()
	if known, ok := namespaces[r.Key.Namespace][r.Key.Name]; ok {
		since = known.since
	}
	namespaces[r.Key.Namespace][r.Key.Name] = waitingTemplate{labels: templateLabels, since: since}
}

// addUnclaimed records the template unless the template contains the claim of a policy.
func (t *waitingTemplates) addUnclaimed(r templateRef, template metav1.Object) {
	if _, claimed := policy.ClaimedBy(template); !claimed {
		t.add(r, template.GetLabels())
	}
}

// since returns when a template was first found to wait. It returns the zero time if the template
// does not wait.
func (t *waitingTemplates) since(r templateRef) time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKind[r.Kind][r.Key.Namespace][r.Key.Name].since
}

// remove removes a template.
func (t *waitingTemplates) remove(r templateRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespaces := t.byKind[r.Kind]
	delete(namespaces[r.Key.Namespace], r.Key.Name)
	if len(namespaces[r.Key.Namespace]) == 0 {
		delete(namespaces, r.Key.Namespace)
	}
	if len(namespaces) == 0 {
		delete(t.byKind, r.Kind)
	}
}

// deleteKind removes all templates of a kind.
func (t *waitingTemplates) deleteKind(kind schema.GroupVersionKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKind, kind)
}

// matching returns the waiting templates that match the filter, in any order.
func (t *waitingTemplates) matching(filter policy.Filter) []templateRef {
	t.mu.RLock()
	defer t.mu.RUnlock()
	namespaces := t.byKind[filter.Kind]
	if filter.Namespace != "" {
		return appendMatches(nil, filter, filter.Namespace, namespaces[filter.Namespace])
	}
	var found []templateRef
	for namespace, waiting := range namespaces {
		found = appendMatches(found, filter, namespace, waiting)
	}
	return found
}

func appendMatches(found []templateRef, filter policy.Filter, namespace string, waiting waitingByName) []templateRef {
	if filter.Name != "" {
		if _, ok := waiting[filter.Name]; ok {
			found = append(found, newRef(filter.Kind, namespace, filter.Name))
		}
		return found
	}
	for name, one := range waiting {
		if filter.Labels == nil || filter.Labels.Matches(one.labels) {
			found = append(found, newRef(filter.Kind, namespace, name))
		}
	}
	return found
}

// reportMaxAge is the maximum age of an object that is reported at the start of the process if no
// policy matches it. An object that is older was reported by an earlier process.
const reportMaxAge = 5 * time.Minute

// oldTemplates contains the templates that are older than reportMaxAge when the process starts. Each
// template is removed at its first reconcile.
type oldTemplates struct {
	mu        sync.Mutex
	started   time.Time
	templates sets.Set[templateRef]
}

// newOldTemplates returns an empty record.
func newOldTemplates() *oldTemplates {
	return &oldTemplates{templates: sets.New[templateRef]()}
}

// setStartTime sets the start time of the process. The ages of templates are relative to this time.
func (i *oldTemplates) setStartTime(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.started = now
}

// add records a template if it is old.
func (i *oldTemplates) add(r templateRef, created time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started.Sub(created) > reportMaxAge {
		i.templates.Insert(r)
	}
}

// take removes a template and reports whether the record contained it.
func (i *oldTemplates) take(r templateRef) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := i.templates.Has(r)
	i.templates.Delete(r)
	return found
}

// waitingRequests contains the requests that wait for another object. The key is the name of that object,
// with an empty namespace for a cluster-scoped object.
type waitingRequests struct {
	mu       sync.Mutex
	byObject map[types.NamespacedName]sets.Set[templateRequest]
}

// newWaitingRequests returns an empty record.
func newWaitingRequests() *waitingRequests {
	return &waitingRequests{byObject: map[types.NamespacedName]sets.Set[templateRequest]{}}
}

// add records that a request waits for an object.
func (b *waitingRequests) add(object types.NamespacedName, r templateRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byObject[object] == nil {
		b.byObject[object] = sets.New[templateRequest]()
	}
	b.byObject[object].Insert(r)
}

// take removes and returns the requests that wait for the object.
func (b *waitingRequests) take(object types.NamespacedName) []templateRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.byObject[object].UnsortedList()
	delete(b.byObject, object)
	return taken
}

// deleteTemplate removes the requests of a deleted template.
func (b *waitingRequests) deleteTemplate(r templateRef) {
	b.deleteFunc(func(request templateRequest) bool { return request.Template == r })
}

// deleteKind removes the requests of all templates of a kind.
func (b *waitingRequests) deleteKind(kind schema.GroupVersionKind) {
	b.deleteFunc(func(request templateRequest) bool { return request.Template.Kind == kind })
}

func (b *waitingRequests) deleteFunc(isDeleted func(templateRequest) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for object, requests := range b.byObject {
		maps.DeleteFunc(requests, func(request templateRequest, _ sets.Empty) bool { return isDeleted(request) })
		if requests.Len() == 0 {
			delete(b.byObject, object)
		}
	}
}
