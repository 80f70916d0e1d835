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

// Verbs of reviewed permissions.
const (
	verbGet  = "get"
	verbList = "list"
)

const (
	// maxReviews is the maximum number of concurrent reviews for one request.
	maxReviews = 16
	// failureAge is how long a request does not repeat a failed review.
	failureAge = 30 * time.Second
	// cachedReviewTimeout limits the reviews in a cluster that did not respond to another review. It is
	// long enough for a cached decision, but not for the cluster's response.
	cachedReviewTimeout = 100 * time.Millisecond
)

// access contains one caller's permissions during one request.
type access struct {
	handler *Handler
	caller  user.Info
	// lifetime is how long a decision is used. It is short for a watch, because permissions can change
	// during the watch.
	lifetime time.Duration

	mu        sync.Mutex
	decisions map[target]decision
	// failures maps each cluster to its last failed review.
	failures map[string]decision
}

// target describes what is reviewed: the permission to list a source's objects in one namespace, or in
// all namespaces.
type target struct {
	source    objectcache.Source
	namespace string
}

func sourceTarget(object *objectcache.Object) target { return target{source: *object.Source()} }

func namespaceTarget(object *objectcache.Object) target {
	return target{source: *object.Source(), namespace: object.Namespace()}
}

// decision is the result of a review.
type decision struct {
	allowed bool
	// err is the reason why the permission is unknown. If it is set, allowed is false.
	err error
	// at is the time of the review.
	at time.Time
}

func (h *Handler) newAccess(caller user.Info, lifetime time.Duration) *access {
	return &access{
		handler: h, caller: caller, lifetime: lifetime,
		decisions: map[target]decision{}, failures: map[string]decision{},
	}
}

// known returns the decision for the object, or isKnown=false if a review is needed. The decision for
// all namespaces applies if it permits access or if its review failed.
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

// reviewSources reviews the permissions for all namespaces of the sources, and returns the decisions in
// the order of the sources. These decisions do not depend on objects, so the caller may see them.
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

// unknownSources returns the targets of those sources that need a review.
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

// reviewAndWarn calls reviewSources, and adds a warning for each source that is omitted.
func (a *access) reviewAndWarn(ctx context.Context, sources []objectcache.Source, found *warnings) []decision {
	decisions := a.reviewSources(ctx, sources)
	for i, d := range decisions {
		if !d.allowed {
			found.addOmitted(sources[i], d.err)
		}
	}
	return decisions
}

// review reviews the permissions for the objects, first for all namespaces and then for the objects'
// namespaces. Decisions for single namespaces depend on which objects exist. Therefore the caller must
// see them only indirectly, through the permitted objects.
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

// decide reviews the targets in parallel and stores the decisions. A cluster that does not respond
// delays the reviews in other clusters by at most the timeout.
func (a *access) decide(ctx context.Context, targets map[target]bool) {
	slots := make(chan struct{}, maxReviews)
	var reviews sync.WaitGroup
	for _, t := range interleave(targets) {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			allowed, err := a.reviewPermission(ctx, verbList, t.source, t.namespace, "")
			a.store(t, allowed, err)
		})
	}
	reviews.Wait()
}

// interleave orders the targets so that clusters alternate. Otherwise, a cluster that does not respond
// could occupy all slots.
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

// lastFailure returns the error of the cluster's last failed review, or nil if there is no recent one.
func (a *access) lastFailure(cluster string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.failures[cluster]; a.handler.now().Sub(last.at) <= failureAge {
		return last.err
	}
	return nil
}

// reviewPermission reviews one of the caller's permissions.
func (a *access) reviewPermission(ctx context.Context, verb string, source objectcache.Source, namespace, name string) (bool, error) {
	timeout, failure := a.handler.reviewTimeout, a.lastFailure(source.Cluster)
	if failure != nil {
		timeout = min(timeout, cachedReviewTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type result struct {
		allowed bool
		err     error
	}
	results := make(chan result, 1)
	go func() {
		allowed, err := a.handler.permissions.Allowed(ctx, a.caller, source.Cluster, verb, source.GroupVersionResource(), namespace, name)
		results <- result{allowed, err}
	}()
	select {
	case reviewed := <-results:
		if reviewed.err == nil || ctx.Err() == nil {
			return reviewed.allowed, reviewed.err
		}
	case <-ctx.Done():
	}
	if failure != nil {
		return false, failure
	}
	return false, fmt.Errorf("the cluster did not respond within %s to the review of user %q's permissions", timeout, a.caller.GetName())
}
