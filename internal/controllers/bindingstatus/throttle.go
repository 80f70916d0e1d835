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

// isRolloutInProgress reports whether the statuses of the clusters are expected to change
// without a new write. This is true while an expected cluster has not reported, has the
// manifest but is not healthy yet, is in a rolling update, or has an older template than
// another cluster. An apply error is a report.
func isRolloutInProgress(expected sets.Set[string], items []workv1alpha2.AggregatedStatusItem) bool {
	reported, template := 0, int64(0)
	for i := range items {
		item := &items[i]
		if !expected.Has(item.ClusterName) {
			continue
		}
		reported++
		if !item.Applied {
			if item.AppliedMessage == "" {
				return true
			}
			continue
		}
		progress := work.ParseProgress(item.Status)
		if item.Health != workv1alpha2.ResourceHealthy || !progress.IsStable {
			return true
		}
		if template != 0 && progress.TemplateGeneration != 0 && progress.TemplateGeneration != template {
			return true
		}
		template = max(template, progress.TemplateGeneration)
	}
	return reported < expected.Len()
}

// progressWritesPerSecond is how many bindings in a rollout may be written per second, in
// total. Progress is written while few rollouts run. When thousands run at once, only their
// results are written.
const progressWritesPerSecond = 3

// progressDelay is how long the status of a binding in a rollout is delayed. Most rollouts end
// within it.
const progressDelay = 250 * time.Millisecond

// lagDelay is how long a condition for an earlier generation stays while members get the
// newest state of their Works. They nearly always get it within that time, which saves one of
// two writes.
const lagDelay = 3 * time.Second

const (
	// maxWait is how long a binding waits at most, regardless of the budget. Waiting bindings
	// compete for the budget, and one of them may be unlucky for long.
	maxWait = 30 * time.Second
	// maxPause is the maximum time until a waiting binding tries to get a share of the budget
	// again.
	maxPause = 10 * time.Second
)

// progressThrottle delays the writes of bindings in a rollout, so that not every step of a
// rollout over many clusters is written.
type progressThrottle struct {
	// initialDelay is how long the first write is delayed. minPause is the minimum delay of a
	// binding for which the budget has no share.
	initialDelay, minPause time.Duration

	budget       *rate.Limiter
	mu           sync.Mutex
	waitingSince map[reconcile.Request]time.Time
}

func newProgressThrottle(initialDelay, minPause time.Duration) *progressThrottle {
	return &progressThrottle{
		initialDelay: initialDelay, minPause: minPause, waitingSince: map[reconcile.Request]time.Time{},
		budget: rate.NewLimiter(progressWritesPerSecond, progressWritesPerSecond),
	}
}

// remainingDelay returns how much longer the write of a binding is delayed; 0 means that it is
// written now.
func (p *progressThrottle) remainingDelay(request reconcile.Request, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.waitingSince[request]
	if !ok {
		p.waitingSince[request] = now
		return p.initialDelay
	}
	if left := since.Add(p.initialDelay).Sub(now); left > 0 {
		return left
	}
	if left := since.Add(maxWait).Sub(now); left > 0 && !p.budget.AllowN(now, 1) {
		return min(left, p.pause())
	}
	delete(p.waitingSince, request)
	return 0
}

// pause returns the time in which all waiting bindings get a share. Reconciling a binding
// costs more than waiting for its share.
func (p *progressThrottle) pause() time.Duration {
	all := time.Duration(len(p.waitingSince)) * time.Second / progressWritesPerSecond
	return min(max(all, p.minPause), maxPause)
}

// stop ends the waiting of a binding.
func (p *progressThrottle) stop(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waitingSince, request)
}
