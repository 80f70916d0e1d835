package bindingstatus

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
)

// underWay tells that what clusters report is about to change by itself: an
// expected one has not answered, has what it should and is not healthy yet, is in
// the middle of a rolling update, or has an older template than another.
// That an object could not be applied is an answer.
func underWay(expected sets.Set[string], items []workv1alpha2.AggregatedStatusItem) bool {
	answered, template := 0, int64(0)
	for i := range items {
		item := &items[i]
		if !expected.Has(item.ClusterName) {
			continue
		}
		answered++
		if !item.Applied {
			if item.AppliedMessage == "" {
				return true
			}
			continue
		}
		progress := work.ProgressOf(item.Status)
		if item.Health != workv1alpha2.ResourceHealthy || !progress.Settled {
			return true
		}
		if template != 0 && progress.TemplateGeneration != 0 && progress.TemplateGeneration != template {
			return true
		}
		template = max(template, progress.TemplateGeneration)
	}
	return answered < expected.Len()
}

// progressPerSecond is how many bindings that are under way may be written in a
// second, all together. How far they are is worth a write as long as there are
// few; when thousands are rolled out at once only where they arrive is.
const progressPerSecond = 3

// calm is how long a binding under way is left alone before it is written how far
// it is: most arrive within it.
const calm = 250 * time.Millisecond

// lagCalm is how long a condition about an earlier generation is left standing
// while members get the newest state of their Works: nearly always they have it
// within that time, and then it needs one write instead of two.
const lagCalm = 3 * time.Second

const (
	// longest is how long a binding waits at most, budget or not: those that wait take
	// shares from each other, and one may have bad luck for long.
	longest = 30 * time.Second
	// seldom is how long one waits at most until it asks for a share again.
	seldom = 10 * time.Second
)

// patience lets a binding whose clusters are under way be written once in a while
// instead of at every step: a rollout over many clusters has many.
type patience struct {
	// calm is how long the first look waits, often how long one waits at least that the
	// budget did not allow.
	calm, often time.Duration

	budget *rate.Limiter
	mu     sync.Mutex
	since  map[reconcile.Request]time.Time
}

func newPatience(calm, often time.Duration) *patience {
	return &patience{
		calm: calm, often: often, since: map[reconcile.Request]time.Time{},
		budget: rate.NewLimiter(progressPerSecond, progressPerSecond),
	}
}

// wait is how much longer a binding under way should wait; 0 means that it should
// be written now.
func (p *patience) wait(request reconcile.Request, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.since[request]
	if !ok {
		p.since[request] = now
		return p.calm
	}
	if left := since.Add(p.calm).Sub(now); left > 0 {
		return left
	}
	if left := since.Add(longest).Sub(now); left > 0 && !p.budget.AllowN(now, 1) {
		return min(left, p.pause())
	}
	delete(p.since, request)
	return 0
}

// pause is how long the shares of all that wait take to come: a look at a binding
// costs more than the answer that there is none.
func (p *patience) pause() time.Duration {
	all := time.Duration(len(p.since)) * time.Second / progressPerSecond
	return min(max(all, p.often), seldom)
}

// over ends the waiting of a binding.
func (p *patience) over(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, request)
}
