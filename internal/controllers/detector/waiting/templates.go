// Package waiting answers "which templates wait, and for what?". A template waits for a policy that
// selects it, for an override policy on which its policy depends, or for the deletion of a binding
// that has the name of its own binding. All records are in memory, because every template is
// reconciled and recorded again after a start.
package waiting

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

// Templates contains the templates that no policy claims. They are grouped by kind, namespace and
// name, because policies select them by these fields. The labels of a template are those of its
// last reconcile, which is enough because a template whose labels change is reconciled again.
type Templates struct {
	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]map[string]byName
}

// byName contains the waiting templates of one namespace by name.
type byName map[string]entry

// entry is the record of one template.
type entry struct {
	labels labels.Set
	// since is the time at which the template was first found to wait.
	since time.Time
}

// NewTemplates returns an empty record.
func NewTemplates() *Templates {
	return &Templates{byKind: map[schema.GroupVersionKind]map[string]byName{}}
}

// Add records a template with its labels. If the template is already recorded, its time is kept.
func (t *Templates) Add(r templates.Ref, templateLabels map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	namespaces := t.byKind[r.Kind]
	if namespaces == nil {
		namespaces = map[string]byName{}
		t.byKind[r.Kind] = namespaces
	}
	if namespaces[r.Key.Namespace] == nil {
		namespaces[r.Key.Namespace] = byName{}
	}
	since := time.Now()
	if known, ok := namespaces[r.Key.Namespace][r.Key.Name]; ok {
		since = known.since
	}
	namespaces[r.Key.Namespace][r.Key.Name] = entry{labels: templateLabels, since: since}
}

// AddUnclaimed records the template unless the template contains the claim of a policy.
func (t *Templates) AddUnclaimed(r templates.Ref, template metav1.Object) {
	if _, claimed := policy.ClaimedBy(template); !claimed {
		t.Add(r, template.GetLabels())
	}
}

// Since returns when a template was first found to wait. It returns the zero time if the template
// does not wait.
func (t *Templates) Since(r templates.Ref) time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKind[r.Kind][r.Key.Namespace][r.Key.Name].since
}

// Remove removes a template.
func (t *Templates) Remove(r templates.Ref) {
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

// DeleteKind removes all templates of a kind.
func (t *Templates) DeleteKind(kind schema.GroupVersionKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKind, kind)
}

// Matching returns the waiting templates that match the filter, in any order.
func (t *Templates) Matching(filter policy.Filter) []templates.Ref {
	t.mu.RLock()
	defer t.mu.RUnlock()
	namespaces := t.byKind[filter.Kind]
	if filter.Namespace != "" {
		return appendMatches(nil, filter, filter.Namespace, namespaces[filter.Namespace])
	}
	var found []templates.Ref
	for namespace, waiting := range namespaces {
		found = appendMatches(found, filter, namespace, waiting)
	}
	return found
}

func appendMatches(found []templates.Ref, filter policy.Filter, namespace string, waiting byName) []templates.Ref {
	if filter.Name != "" {
		if _, ok := waiting[filter.Name]; ok {
			found = append(found, templates.NewRef(filter.Kind, namespace, filter.Name))
		}
		return found
	}
	for name, one := range waiting {
		if filter.Labels == nil || filter.Labels.Matches(one.labels) {
			found = append(found, templates.NewRef(filter.Kind, namespace, name))
		}
	}
	return found
}
