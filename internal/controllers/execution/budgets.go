package execution

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// budgets bound the requests for deletion, for each cluster by itself.
type budgets struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	clusters map[string]*rate.Limiter
}

func newBudgets(perSecond float64, burst int) *budgets {
	return &budgets{rate: rate.Limit(perSecond), burst: burst, clusters: map[string]*rate.Limiter{}}
}

// spend takes n deletions out of the budget of a cluster, or returns how long to wait
// before asking again.
func (b *budgets) spend(cluster string, n int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	budget, ok := b.clusters[cluster]
	if !ok {
		budget = rate.NewLimiter(b.rate, b.burst)
		b.clusters[cluster] = budget
	}
	reservation := budget.ReserveN(now, min(n, b.burst))
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// forget drops the budget of a cluster that is gone.
func (b *budgets) forget(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clusters, cluster)
}
