package execution

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// deletionBudgets limit the rate of deletions in each cluster separately.
type deletionBudgets struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	clusters map[string]*rate.Limiter
}

func newDeletionBudgets(perSecond float64, burst int) *deletionBudgets {
	return &deletionBudgets{rate: rate.Limit(perSecond), burst: burst, clusters: map[string]*rate.Limiter{}}
}

// reserve takes n deletions from the budget of a cluster. If the budget is too small, it takes none
// and returns the delay before the next attempt.
func (d *deletionBudgets) reserve(cluster string, n int, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	budget, ok := d.clusters[cluster]
	if !ok {
		budget = rate.NewLimiter(d.rate, d.burst)
		d.clusters[cluster] = budget
	}
	reservation := budget.ReserveN(now, min(n, d.burst))
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// deleteCluster deletes the budget of a deleted cluster.
func (d *deletionBudgets) deleteCluster(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clusters, cluster)
}
