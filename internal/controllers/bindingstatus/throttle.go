package bindingstatus

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// isRolloutInProgress reports whether the statuses of the clusters are expected to change without a
// new write by Karmada. This is true while an expected cluster has not reported, has the manifest
// but is not healthy yet, is in a rolling update, or has an older template than another cluster. A
// cluster with an apply error has reported.
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

// maxPause is the longest time until a waiting binding tries again to get a share of the budget.
const maxPause = 10 * time.Second

// progressThrottle delays the writes of bindings in a rollout, so that not every step of a rollout
// in many clusters causes a write.
type progressThrottle struct {
	policy loop.PacingPolicy
	// initialDelay is the delay of the first write.
	initialDelay time.Duration

	budget       *rate.Limiter
	mu           sync.Mutex
	waitingSince map[reconcile.Request]time.Time
}

func newProgressThrottle(policy loop.PacingPolicy, initialDelay time.Duration) *progressThrottle {
	return &progressThrottle{
		policy: policy, initialDelay: initialDelay, waitingSince: map[reconcile.Request]time.Time{},
		budget: rate.NewLimiter(rate.Limit(policy.BindingProgressPerSecond), policy.BindingProgressPerSecond),
	}
}

// remainingDelay returns how much longer the write of a binding must be delayed. 0 means that the
// write is due now.
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
	// MaxProgressDelay limits the wait. Without this limit a binding could wait much longer,
	// because all waiting bindings compete for the budget.
	if left := since.Add(p.policy.MaxProgressDelay).Sub(now); left > 0 && !p.budget.AllowN(now, 1) {
		return min(left, p.pause())
	}
	delete(p.waitingSince, request)
	return 0
}

// pause returns the delay after which a binding that got no share of the budget tries again. It is
// the time in which all waiting bindings can get a share. An earlier try would usually fail, and a
// reconcile costs more than the wait.
func (p *progressThrottle) pause() time.Duration {
	all := time.Duration(len(p.waitingSince)) * time.Second / time.Duration(p.policy.BindingProgressPerSecond)
	return min(max(all, p.policy.Settle), maxPause)
}

// stop removes a binding from the waiting bindings.
func (p *progressThrottle) stop(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waitingSince, request)
}
