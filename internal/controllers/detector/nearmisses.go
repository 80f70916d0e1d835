package detector

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// maxNearMisses is the maximum number of waiting templates that are queued because a policy nearly
// selects them.
const maxNearMisses = 20

// nearMisses returns at most maxNearMisses waiting templates that a policy nearly selects. It uses
// only selectors that select nothing, and the nearest template comes first. selected are the
// templates that the policy selects. isClaimed reports whether a template contains the claim of any
// policy.
func (t *waitingTemplates) nearMisses(p policy.Object, selected sets.Set[templateRef], isClaimed func(templateRef) bool) []templateRef {
	probe, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	spec := probe.PropagationSpec()
	spec.ResourceSelectors = slices.DeleteFunc(spec.ResourceSelectors, func(selector policyv1alpha1.ResourceSelector) bool {
		filter, ok := policy.FilterOf(p, &selector)
		return ok && selectsAny(filter, selected, isClaimed)
	})
	return t.nearestTemplates(probe)
}

// selectsAny reports whether a filter matches any template, including templates that another policy
// claims.
func selectsAny(filter policy.Filter, selected sets.Set[templateRef], isClaimed func(templateRef) bool) bool {
	if filter.Name != "" && filter.Namespace != "" && isClaimed(newRef(filter.Kind, filter.Namespace, filter.Name)) {
		return true
	}
	for r := range selected {
		if r.Kind == filter.Kind && (filter.Namespace == "" || filter.Namespace == r.Key.Namespace) &&
			(filter.Name == "" || filter.Name == r.Key.Name) {
			return true
		}
	}
	return false
}

// nearestTemplates returns at most maxNearMisses waiting templates that the policy nearly selects. The
// nearest template comes first.
func (t *waitingTemplates) nearestTemplates(p policy.Object) []templateRef {
	kinds := sets.New[string]()
	for _, selector := range p.PropagationSpec().ResourceSelectors {
		kinds.Insert(strings.ToLower(selector.Kind))
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	misses := map[templateRef]policy.NearMiss{}
	for kind, namespaces := range t.byKind {
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

func collectMisses(misses map[templateRef]policy.NearMiss, p policy.Object, kind schema.GroupVersionKind, namespace string,
	waiting waitingByName) {
	for name, waiter := range waiting {
		r := newRef(kind, namespace, name)
		if miss, ok := policy.NearestMiss(r.stub(waiter.labels), []policy.Object{p}); ok {
			misses[r] = miss
		}
	}
}
