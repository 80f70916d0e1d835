package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Verbs of reviews.
const (
	verbGet  = "get"
	verbList = "list"
)

const (
	// maxReviews limits the reviews of one request that run in parallel.
	maxReviews = 16
	// failureAge is how long a request uses a failed review.
	failureAge = 30 * time.Second
	// rememberedTimeout limits the reviews of a cluster that did not answer another review. In this
	// time, Rights returns what it remembers, but does not wait for the cluster.
	rememberedTimeout = 100 * time.Millisecond
)

// access knows what one caller may read, for the time of one request.
type access struct {
	handler *Handler
	caller  user.Info
	// lifetime is how long a decision is used. A watch uses decisions for a short time, because rights
	// can change while it lasts. Rights itself remembers decisions for a short time.
	lifetime time.Duration

	mu        sync.Mutex
	decisions map[target]decision
	// failures has the last failed review of each cluster.
	failures map[string]decision
}

// target is what a review asks for: to list the objects of a source in a namespace, or in all of
// them.
type target struct {
	source    objectcache.Source
	namespace string
}

func sourceTarget(object *objectcache.Object) target { return target{source: *object.Source()} }

func namespaceTarget(object *objectcache.Object) target {
	return target{source: *object.Source(), namespace: object.Namespace()}
}

// decision is the result of a review at a time.
type decision struct {
	allowed bool
	// err says why the right is not known. Then allowed is false.
	err error
	at  time.Time
}

func (h *Handler) newAccess(caller user.Info, lifetime time.Duration) *access {
	return &access{
		handler: h, caller: caller, lifetime: lifetime,
		decisions: map[target]decision{}, failures: map[string]decision{},
	}
}

// known returns the decision for an object, if no review is needed. The decision for all namespaces is
// used if it allows the object or if it failed.
func (a *access) known(object *objectcache.Object) (d decision, isKnown bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ofSource := sourceTarget(object)
	if d, isKnown = a.lockedDecision(ofSource); !isKnown || d.allowed || d.err != nil {
		return d, isKnown
	}
	return a.lockedDecision(namespaceTarget(object))
}

func (a *access) lockedDecision(t target) (d decision, isKnown bool) {
	d, found := a.decisions[t]
	age, limit := a.handler.now().Sub(d.at), a.lifetime
	if d.err != nil {
		limit = failureAge
	}
	if !found || age > limit {
		return decision{}, false
	}
	return d, true
}

// reviewSources decides for all namespaces of sources, and returns the decisions in the order of the
// sources. The reviews do not depend on the objects of the sources, so their results may be shown to
// the caller.
func (a *access) reviewSources(ctx context.Context, sources []objectcache.Source) []decision {
	a.decide(ctx, a.unknownSources(sources))
	a.mu.Lock()
	defer a.mu.Unlock()
	decisions := make([]decision, 0, len(sources))
	for _, source := range sources {
		decisions = append(decisions, a.decisions[target{source: source}])
	}
	return decisions
}

// unknownSources returns the sources that need a review.
func (a *access) unknownSources(sources []objectcache.Source) map[target]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	targets := map[target]bool{}
	for _, source := range sources {
		if _, isKnown := a.lockedDecision(target{source: source}); !isKnown {
			targets[target{source: source}] = true
		}
	}
	return targets
}

// reviewAndWarn is reviewSources, and adds a warning for each source that is left out.
func (a *access) reviewAndWarn(ctx context.Context, sources []objectcache.Source, found *warnings) []decision {
	decisions := a.reviewSources(ctx, sources)
	for i, d := range decisions {
		if !d.allowed {
			found.leftOut(sources[i], d.err)
		}
	}
	return decisions
}

// review decides for objects: it asks for all namespaces first, and then for the namespaces of the
// objects. The reviews of namespaces depend on the objects. So the caller must not see their results,
// except by the objects that they allow.
func (a *access) review(ctx context.Context, objects []*objectcache.Object) {
	sources := make([]objectcache.Source, 0, len(objects))
	for _, object := range objects {
		sources = append(sources, *object.Source())
	}
	a.decide(ctx, a.unknownSources(sources))
	namespaces := map[target]bool{}
	for _, object := range objects {
		if _, isKnown := a.known(object); !isKnown {
			namespaces[namespaceTarget(object)] = true
		}
	}
	a.decide(ctx, namespaces)
}

// decide asks for targets in parallel and stores the decisions. A cluster that does not answer delays
// the reviews of the others by the timeout at most.
func (a *access) decide(ctx context.Context, targets map[target]bool) {
	slots := make(chan struct{}, maxReviews)
	var reviews sync.WaitGroup
	for _, t := range interleave(targets) {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			allowed, err := a.ask(ctx, verbList, t.source, t.namespace, "")
			a.store(t, allowed, err)
		})
	}
	reviews.Wait()
}

// interleave returns the targets in an order in which clusters take turns, so that a cluster that does
// not answer does not take all slots.
func interleave(targets map[target]bool) []target {
	turns, ofCluster := make(map[target]int, len(targets)), map[string]int{}
	for t := range targets {
		turns[t] = ofCluster[t.source.Cluster]
		ofCluster[t.source.Cluster]++
	}
	return slices.SortedFunc(maps.Keys(targets), func(a, b target) int { return cmp.Compare(turns[a], turns[b]) })
}

func (a *access) store(t target, allowed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := decision{allowed: allowed && err == nil, err: err, at: a.handler.now()}
	a.decisions[t] = d
	if err != nil {
		a.failures[t.source.Cluster] = d
	}
}

// lastFailure returns the error of the last review of a cluster that failed, or nil.
func (a *access) lastFailure(cluster string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.failures[cluster]; a.handler.now().Sub(last.at) <= failureAge {
		return last.err
	}
	return nil
}

// ask reviews one right of the caller.
func (a *access) ask(ctx context.Context, verb string, source objectcache.Source, namespace, name string) (bool, error) {
	timeout, failure := a.handler.reviewTimeout, a.lastFailure(source.Cluster)
	if failure != nil {
		timeout = min(timeout, rememberedTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		allowed bool
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		allowed, err := a.handler.rights.Allowed(ctx, a.caller, source.Cluster, verb, source.GroupVersionResource(), namespace, name)
		answers <- answer{allowed, err}
	}()
	select {
	case found := <-answers:
		if found.err == nil || ctx.Err() == nil {
			return found.allowed, found.err
		}
	case <-ctx.Done():
	}
	if failure != nil {
		return false, failure
	}
	return false, fmt.Errorf("the cluster does not answer the review of the rights of user %q within %s", a.caller.GetName(), timeout)
}
