package detector

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	// reportMaxAge is the maximum age of an object that is reported at the start of the
	// process when no policy matches it. An earlier process has reported older objects.
	reportMaxAge = 5 * time.Minute
	// maxNearMisses is the maximum number of waiting templates that are queued because a
	// policy nearly selects them.
	maxNearMisses = 20
	// noMatchGrace is the time that a template waits for a policy before it is
	// reported: users create both together, in any order.
	noMatchGrace = 3 * time.Second
)

// awaitPolicy handles a template that no policy selects. An old template is not reported,
// because an earlier process has done so.
func (d *detector) awaitPolicy(ctx context.Context, r templateRef, template *unstructured.Unstructured, old bool) error {
	bound, err := d.bindingOf(ctx, r)
	if err != nil {
		return err
	}
	if err := d.unclaimLeftover(ctx, template, bound); err != nil || old {
		return err
	}
	cause := policy.CheckMatch(template, bound, d.policies.nearestMiss)
	if cause == nil {
		return nil
	}
	if remaining := d.noMatchGrace - time.Since(d.waitingTemplates.waitingSince(r)); remaining > 0 {
		// No user change caused this request, so its cause is the policy.
		d.startup.queue.AddAfter(templateRequest{r, policy.PolicyChanged}, remaining)
		return nil
	}
	d.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, cause)
	return nil
}

// initialTemplates holds the old templates that exist when the process starts, until the first
// reconcile of each.
type initialTemplates struct {
	mu        sync.Mutex
	started   time.Time
	templates sets.Set[templateRef]
}

func newInitialTemplates() *initialTemplates {
	return &initialTemplates{templates: sets.New[templateRef]()}
}

// setStartTime sets the time that ages are relative to.
func (l *initialTemplates) setStartTime(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = now
}

func (l *initialTemplates) add(r templateRef, created time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started.Sub(created) > reportMaxAge {
		l.templates.Insert(r)
	}
}

// take removes a template and reports whether it was held.
func (l *initialTemplates) take(r templateRef) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.templates.Has(r)
	l.templates.Delete(r)
	return found
}

// nearMisses returns the waiting templates that a policy nearly selects with a selector that
// selects nothing, the nearest first, at most maxNearMisses. selected are the templates that
// the policy selects.
func (d *detector) nearMisses(p policy.Object, selected sets.Set[templateRef]) []templateRef {
	probe, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	spec := probe.PropagationSpec()
	spec.ResourceSelectors = slices.DeleteFunc(spec.ResourceSelectors, func(selector policyv1alpha1.ResourceSelector) bool {
		filter, ok := filterOf(p, &selector)
		return ok && d.selectsAny(filter, selected)
	})
	return d.waitingTemplates.nearMisses(probe)
}

// selectsAny reports whether a filter matches any template, including those that another
// policy claims.
func (d *detector) selectsAny(filter templateFilter, selected sets.Set[templateRef]) bool {
	if filter.name != "" && filter.namespace != "" && d.claims.isClaimed(templateRef{filter.kind, types.NamespacedName{Namespace: filter.namespace, Name: filter.name}}) {
		return true
	}
	for r := range selected {
		if r.kind == filter.kind && (filter.namespace == "" || filter.namespace == r.key.Namespace) && (filter.name == "" || filter.name == r.key.Name) {
			return true
		}
	}
	return false
}

// nearMisses returns the waiting templates that the policy nearly selects, the nearest first,
// at most maxNearMisses.
func (w *waitingTemplates) nearMisses(p policy.Object) []templateRef {
	kinds := sets.New[string]()
	for _, selector := range p.PropagationSpec().ResourceSelectors {
		kinds.Insert(strings.ToLower(selector.Kind))
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	misses := map[templateRef]policy.NearMiss{}
	for kind, namespaces := range w.byKind {
		if !kinds.Has(strings.ToLower(kind.Kind)) {
			continue
		}
		for namespace, waiting := range namespaces {
			if policy.IsCluster(p) || namespace == p.GetNamespace() {
				collectMisses(misses, p, kind, namespace, waiting)
			}
		}
	}
	found := slices.SortedFunc(maps.Keys(misses), func(a, b templateRef) int {
		left, right := misses[a], misses[b]
		return cmp.Or(left.Compare(&right), strings.Compare(a.String(), b.String()))
	})
	return found[:min(len(found), maxNearMisses)]
}

func collectMisses(misses map[templateRef]policy.NearMiss, p policy.Object, kind schema.GroupVersionKind, namespace string, waiting waitingByName) {
	for name, waiter := range waiting {
		r := templateRef{kind, types.NamespacedName{Namespace: namespace, Name: name}}
		if miss, ok := policy.NearestMiss(newTemplateStub(r, waiter.labels), []policy.Object{p}); ok {
			misses[r] = miss
		}
	}
}

// newTemplateStub returns an object with the fields that selectors match on.
func newTemplateStub(r templateRef, templateLabels labels.Set) *unstructured.Unstructured {
	object := newObject(r.kind)
	object.SetNamespace(r.key.Namespace)
	object.SetName(r.key.Name)
	object.SetLabels(templateLabels)
	return object
}
