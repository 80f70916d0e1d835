package execution

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// deletionRates limit the rate of deletions in each cluster separately.
type deletionRates struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	clusters map[string]*rate.Limiter
}

func newDeletionRates(perSecond float64, burst int) *deletionRates {
	return &deletionRates{rate: rate.Limit(perSecond), burst: burst, clusters: map[string]*rate.Limiter{}}
}

// reserve takes n deletions from the rate limit of a cluster. If the limit is too small, it takes none
// and returns the delay before the next attempt.
func (d *deletionRates) reserve(cluster string, n int, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	limit, ok := d.clusters[cluster]
	if !ok {
		limit = rate.NewLimiter(d.rate, d.burst)
		d.clusters[cluster] = limit
	}
	reservation := limit.ReserveN(now, min(n, d.burst))
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// deleteCluster deletes the rate limit of a deleted cluster.
func (d *deletionRates) deleteCluster(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clusters, cluster)
}
