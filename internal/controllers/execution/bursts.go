package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// surveyAge is for how long a count of a cluster's Works is good enough.
const surveyAge = time.Second

// bursts counts for each cluster what is being deleted there.
type bursts struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	clusters map[string]*deletions
}

// deletions are those of one cluster.
type deletions struct {
	// budget bounds the requests for deletion.
	budget *rate.Limiter
	// done counts deletions that nothing explained, all those that were.
	done map[guard.Owner]guard.Tally
	all  guard.Tally
	// survey is what was found pending when it was last looked for.
	survey survey
	// told is whether users know that deletions are held.
	told bool
}

// survey is what a look at all Works of a cluster found.
type survey struct {
	at time.Time
	// done is how many were deleted in the window before, works how many are left.
	done, works int
	// pending counts those that are being deleted without an explanation.
	pending map[guard.Owner]int
}

func newBursts(perSecond float64, burst int) *bursts {
	return &bursts{rate: rate.Limit(perSecond), burst: burst, clusters: map[string]*deletions{}}
}

// of are the deletions of a cluster; b.mu is held.
func (b *bursts) of(cluster string) *deletions {
	known, ok := b.clusters[cluster]
	if !ok {
		known = &deletions{budget: rate.NewLimiter(b.rate, b.burst), done: map[guard.Owner]guard.Tally{}}
		b.clusters[cluster] = known
	}
	return known
}

// spend takes n deletions out of the budget of a cluster, or tells how long to
// wait before asking again.
func (b *bursts) spend(cluster string, n int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	budget := b.of(cluster).budget
	n = min(n, b.burst)
	reservation := budget.ReserveN(now, n)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// done notes that the objects of a Work were deleted.
func (b *bursts) done(cluster string, facts guard.Facts, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of(cluster)
	known.all = known.all.Add(1, now)
	if guard.Open(facts) {
		known.done[facts.Owner] = known.done[facts.Owner].Add(1, now)
	}
}

// tell tells whether users must be told that deletions are held: once, until none
// is.
func (b *bursts) tell(cluster string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of(cluster)
	told := known.told
	known.told = true
	return !told
}

// untell makes the next hold news again.
func (b *bursts) untell(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of(cluster).told = false
}

// forget drops what is known of a cluster.
func (b *bursts) forget(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clusters, cluster)
}

// size is the burst that a deletion is part of. The Works of the cluster are
// looked at anew when the last look is too old, or too much happened since.
func (c *controller) size(ctx context.Context, cluster *clusterv1alpha1.Cluster, owner guard.Owner) (guard.Burst, error) {
	now := c.now()
	c.bursts.mu.Lock()
	known := c.bursts.of(cluster.Name)
	last, done := known.survey, known.all.Count(now)
	c.bursts.mu.Unlock()
	if now.Sub(last.at) > surveyAge || done-last.done >= c.options.Deletions.Least {
		fresh, err := c.survey(ctx, cluster)
		if err != nil {
			return guard.Burst{}, err
		}
		fresh.at, fresh.done = now, done
		last = fresh
		c.bursts.mu.Lock()
		known.survey = fresh
		c.bursts.mu.Unlock()
	}
	c.bursts.mu.Lock()
	defer c.bursts.mu.Unlock()
	return guard.Burst{Open: last.pending[owner] + known.done[owner].Count(now), Works: last.works + last.done}, nil
}

// survey counts the Works of a cluster, and which of them are being deleted for
// no reason that is known.
func (c *controller) survey(ctx context.Context, cluster *clusterv1alpha1.Cluster) (survey, error) {
	works := &workv1alpha1.WorkList{}
	if err := c.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return survey{}, fmt.Errorf("counting the Works of cluster %q: %w", cluster.Name, err)
	}
	found := survey{pending: map[guard.Owner]int{}}
	for i := range works.Items {
		each := &works.Items[i]
		if c.applied.isReleased(each) {
			continue
		}
		found.works++
		if each.DeletionTimestamp == nil {
			continue
		}
		facts, err := c.explain.facts(ctx, cluster, each)
		if err != nil {
			return survey{}, err
		}
		if facts.Owner == guard.Gone {
			facts.Template, _ = c.explain.proofs.recall(bindingID(each), c.now())
		}
		if guard.Open(facts) {
			found.pending[facts.Owner]++
		}
	}
	return found, nil
}
