package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// surveyAge is for how long a count of a cluster's Works is good enough.
const surveyAge = time.Second

// counts holds for each cluster how much is being deleted there.
type counts struct {
	mu       sync.Mutex
	clusters map[string]*deletions
	// settled are Works that need no verdict any more and that the cache may show.
	settled map[types.NamespacedName]types.UID
}

// deletions are those of one cluster.
type deletions struct {
	// open counts the Works whose objects were deleted without an explanation, all
	// counts every Work whose objects were deleted.
	open, all guard.Tally
	survey    survey
	// announced is the reason of the last event about deletions that are held, empty if
	// the next one is an event again.
	announced string
}

// survey is what a look at all Works of a cluster found.
type survey struct {
	at time.Time
	// open and all are the counts at that time.
	open, all int
	// works is how many Works there are, pending how many of them are being deleted
	// without an explanation.
	works, pending int
}

// loss is what one cluster loses without an explanation.
type loss struct {
	cluster string
	open    int
}

// losses are those of all clusters, the greatest first.
type losses []loss

func newCounts() *counts {
	return &counts{clusters: map[string]*deletions{}, settled: map[types.NamespacedName]types.UID{}}
}

// of returns the deletions of a cluster; c.mu is held.
func (c *counts) of(cluster string) *deletions {
	known, ok := c.clusters[cluster]
	if !ok {
		known = &deletions{}
		c.clusters[cluster] = known
	}
	return known
}

func (c *counts) settle(cluster string, of *workv1alpha1.Work, ruling Ruling, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(of)
	if c.settled[key] == of.UID {
		return
	}
	c.settled[key] = of.UID
	if ruling.Verdict != guard.Delete {
		return
	}
	known := c.of(cluster)
	known.all = known.all.Add(1, now)
	if guard.Open(ruling.Facts) && !ruling.Facts.Confirmed {
		known.open = known.open.Add(1, now)
	}
}

func (c *counts) isSettled(of *workv1alpha1.Work) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid, ok := c.settled[client.ObjectKeyFromObject(of)]
	return ok && uid == of.UID
}

// forgetWork notes that a Work is gone, or needs a verdict again.
func (c *counts) forgetWork(of types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.settled, of)
}

func (c *counts) forgetCluster(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
}

// setAnnounced notes the reason of an event about the deletions that are held in a
// cluster, and returns the one before.
func (c *counts) setAnnounced(cluster, reason string) (before string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.of(cluster)
	before, known.announced = known.announced, reason
	return before
}

// scale returns what a deletion without an explanation is part of. The Works of the
// cluster are counted again when the last count is too old, or too much happened since.
func (j *Judge) scale(ctx context.Context, cluster *clusterv1alpha1.Cluster) (guard.Scale, losses, error) {
	now, c := j.now(), j.counts
	c.mu.Lock()
	known := c.of(cluster.Name)
	last, all, open := known.survey, known.all.Count(now), known.open.Count(now)
	c.mu.Unlock()
	if now.Sub(last.at) > surveyAge || all-last.all >= j.limits.Cluster.Least {
		fresh, err := j.survey(ctx, cluster)
		if err != nil {
			return guard.Scale{}, nil, err
		}
		fresh.at, fresh.all, fresh.open = now, all, open
		last = fresh
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known = c.of(cluster.Name)
	known.survey = last
	// What was pending at the time of the survey and is deleted since counts twice, for
	// a second at most: new deletions are not in the survey.
	own := guard.Burst{Open: last.pending + known.open.Count(now), Works: last.works + last.all}
	scale, lost := c.fleet(cluster.Name, own, now)
	return scale, lost, nil
}

// fleet adds up what all clusters lose; c.mu is held.
func (c *counts) fleet(name string, own guard.Burst, now time.Time) (guard.Scale, losses) {
	scale := guard.Scale{Cluster: own, Fleet: own, Clusters: 1}
	lost := losses{{name, own.Open}}
	for other, known := range c.clusters {
		burst, loses := known.burst(now)
		if other == name || !loses {
			continue
		}
		scale.Clusters++
		scale.Fleet.Open += burst.Open
		scale.Fleet.Works += burst.Works
		lost = append(lost, loss{other, burst.Open})
	}
	slices.SortFunc(lost, func(a, b loss) int {
		return cmp.Or(cmp.Compare(b.open, a.open), cmp.Compare(a.cluster, b.cluster))
	})
	return scale, lost
}

// burst is what a cluster loses by its last survey and what was deleted since. It is
// false for a cluster that loses nothing without an explanation.
func (d *deletions) burst(now time.Time) (guard.Burst, bool) {
	open, pending := d.open.Count(now), 0
	if now.Sub(d.survey.at) <= guard.Window {
		pending = max(0, d.survey.pending-max(0, open-d.survey.open))
	}
	return guard.Burst{Open: open + pending, Works: d.survey.works + d.survey.all}, open+pending > 0
}

// survey counts the Works of a cluster, and which of them are being deleted for no
// reason that is known. Works whose binding is gone are not counted: each is proven by
// itself.
func (j *Judge) survey(ctx context.Context, cluster *clusterv1alpha1.Cluster) (survey, error) {
	works := &workv1alpha1.WorkList{}
	if err := j.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return survey{}, fmt.Errorf("counting the Works of cluster %q: %w", cluster.Name, err)
	}
	found := survey{}
	for i := range works.Items {
		each := &works.Items[i]
		if j.counts.isSettled(each) {
			continue
		}
		found.works++
		if each.DeletionTimestamp == nil {
			continue
		}
		facts, err := j.collect(ctx, cluster, each)
		if err != nil {
			return survey{}, err
		}
		if facts.Owner == guard.Drops && guard.Open(facts) && !facts.Confirmed {
			found.pending++
		}
	}
	return found, nil
}
