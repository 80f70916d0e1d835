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
	// reportedAge bounds the age of objects that are reported at the start of the
	// process when no policy matches them. An older one was reported by an earlier
	// process.
	reportedAge = 5 * time.Minute
	// maxNear bounds how many waiting templates are looked at because a policy that
	// does not select them comes near.
	maxNear = 20
	// noMatchGrace is the time that a template waits for a policy before it is
	// reported: users create both together, in any order.
	noMatchGrace = 3 * time.Second
)

// awaitPolicy handles a template that no policy selects. An old template is not
// reported: an earlier process did so.
func (d *detector) awaitPolicy(ctx context.Context, r reference, template *unstructured.Unstructured, old bool) error {
	bound, err := d.bindingOf(ctx, r)
	if err != nil {
		return err
	}
	if err := d.releaseLeftover(ctx, template, bound); err != nil || old {
		return err
	}
	cause := policy.CheckMatch(template, bound, d.policies.nearestMiss)
	if cause == nil {
		return nil
	}
	if early := d.noMatchGrace - time.Since(d.waiting.since(r)); early > 0 {
		// The user did not ask for this pass, so it counts as one of a policy.
		d.entrance.queue.AddAfter(request{r, policy.PolicyChanged}, early)
		return nil
	}
	d.events.Failed(template, policyv1alpha1.EventReasonApplyPolicyFailed, cause)
	return nil
}

// listed holds the templates that were there when the process started, until the
// first pass over each.
type listed struct {
	mu      sync.Mutex
	started time.Time
	held    sets.Set[reference]
}

func newListed() *listed { return &listed{held: sets.New[reference]()} }

// start sets the time from which ages count.
func (l *listed) start(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = now
}

func (l *listed) add(r reference, created time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started.Sub(created) > reportedAge {
		l.held.Insert(r)
	}
}

// take forgets a template and reports whether it was held.
func (l *listed) take(r reference) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held.Has(r)
	l.held.Delete(r)
	return held
}

// near returns the waiting templates that a policy comes near with a selector that
// selects nothing: the nearest first, and maxNear at most. reached are the
// templates that the policy selects.
func (d *detector) near(p policy.Object, reached sets.Set[reference]) []reference {
	probe, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	spec := probe.PropagationSpec()
	spec.ResourceSelectors = slices.DeleteFunc(spec.ResourceSelectors, func(selector policyv1alpha1.ResourceSelector) bool {
		to, ok := reachOf(p, &selector)
		return ok && d.selectsAny(to, reached)
	})
	return d.waiting.near(probe)
}

// selectsAny reports whether there is anything that a selector is about, be it
// claimed by another policy.
func (d *detector) selectsAny(to area, reached sets.Set[reference]) bool {
	if to.name != "" && to.namespace != "" && d.claims.has(reference{to.kind, types.NamespacedName{Namespace: to.namespace, Name: to.name}}) {
		return true
	}
	for r := range reached {
		if r.kind == to.kind && (to.namespace == "" || to.namespace == r.key.Namespace) && (to.name == "" || to.name == r.key.Name) {
			return true
		}
	}
	return false
}

// near returns the templates that the policy comes near, the nearest first, and
// maxNear at most.
func (w *waiting) near(p policy.Object) []reference {
	kinds := sets.New[string]()
	for _, selector := range p.PropagationSpec().ResourceSelectors {
		kinds.Insert(strings.ToLower(selector.Kind))
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	misses := map[reference]policy.Miss{}
	for kind, namespaces := range w.kinds {
		if !kinds.Has(strings.ToLower(kind.Kind)) {
			continue
		}
		for namespace, held := range namespaces {
			if policy.IsCluster(p) || namespace == p.GetNamespace() {
				collectMisses(misses, p, kind, namespace, held)
			}
		}
	}
	found := slices.SortedFunc(maps.Keys(misses), func(a, b reference) int {
		left, right := misses[a], misses[b]
		return cmp.Or(left.Compare(&right), strings.Compare(a.String(), b.String()))
	})
	return found[:min(len(found), maxNear)]
}

func collectMisses(into map[reference]policy.Miss, p policy.Object, kind schema.GroupVersionKind, namespace string, held names) {
	for name, waiter := range held {
		r := reference{kind, types.NamespacedName{Namespace: namespace, Name: name}}
		if miss, ok := policy.NearestMiss(likeness(r, waiter.labels), []policy.Object{p}); ok {
			into[r] = miss
		}
	}
}

// likeness is an object with what selectors look at.
func likeness(r reference, has labels.Set) *unstructured.Unstructured {
	object := blank(r.kind)
	object.SetNamespace(r.key.Namespace)
	object.SetName(r.key.Name)
	object.SetLabels(has)
	return object
}
