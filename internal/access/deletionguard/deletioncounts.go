package deletionguard

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

// maxSurveyAge is the age after which the Works of a cluster are counted again.
const maxSurveyAge = time.Second

// deletionCounts holds the recent deletions of each cluster.
type deletionCounts struct {
	mu       sync.Mutex
	clusters map[string]*clusterDeletions
	// settledWorks are the Works that need no further decision, although the cache may still return
	// them.
	settledWorks map[types.NamespacedName]types.UID
}

// clusterDeletions are the recent deletions of one cluster.
type clusterDeletions struct {
	// unexplained counts the Works whose objects were deleted without an explanation. total
	// counts all Works whose objects were deleted.
	unexplained, total guard.WindowCounter
	lastSurvey         workSurvey
	// announcedReason is the reason of the last event about held deletions in the cluster. If it is
	// empty, the next held deletion records an event.
	announcedReason string
}

// workSurvey is a count of all Works of a cluster at one time.
type workSurvey struct {
	takenAt time.Time
	// unexplained and total are the counts of clusterDeletions when the survey was taken.
	unexplained, total int
	// works is the number of Works. pending is the number of these Works that are being deleted
	// without an explanation.
	works, pending int
}

// clusterLoss is the number of unexplained deletions in one cluster.
type clusterLoss struct {
	cluster     string
	unexplained int
}

// clusterLosses are the losses of all clusters, sorted from the highest to the lowest.
type clusterLosses []clusterLoss

func newDeletionCounts() *deletionCounts {
	return &deletionCounts{clusters: map[string]*clusterDeletions{}, settledWorks: map[types.NamespacedName]types.UID{}}
}

// forCluster returns the recent deletions of a cluster. The caller holds d.mu.
func (d *deletionCounts) forCluster(cluster string) *clusterDeletions {
	deletions, ok := d.clusters[cluster]
	if !ok {
		deletions = &clusterDeletions{}
		d.clusters[cluster] = deletions
	}
	return deletions
}

func (d *deletionCounts) markSettled(cluster string, karmadaWork *workv1alpha1.Work, decision Decision, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(karmadaWork)
	if d.settledWorks[key] == karmadaWork.UID {
		return
	}
	d.settledWorks[key] = karmadaWork.UID
	if decision.Verdict != guard.Delete {
		return
	}
	deletions := d.forCluster(cluster)
	deletions.total = deletions.total.Add(1, now)
	if guard.IsUnexplained(decision.Evidence) && !decision.Evidence.Confirmed {
		deletions.unexplained = deletions.unexplained.Add(1, now)
	}
}

func (d *deletionCounts) isSettled(karmadaWork *workv1alpha1.Work) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	uid, ok := d.settledWorks[client.ObjectKeyFromObject(karmadaWork)]
	return ok && uid == karmadaWork.UID
}

// removeWork records that a Work no longer exists, or needs a decision again.
func (d *deletionCounts) removeWork(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.settledWorks, key)
}

func (d *deletionCounts) removeCluster(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clusters, name)
}

// swapAnnouncedReason stores the reason of an event about the held deletions of a cluster, and
// returns the reason of the previous event.
func (d *deletionCounts) swapAnnouncedReason(cluster, reason string) (previous string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	deletions := d.forCluster(cluster)
	previous, deletions.announcedReason = deletions.announcedReason, reason
	return previous
}

// measureScale returns the numbers of unexplained deletions in the cluster and in all clusters. It
// counts the Works of the cluster again if the last count is too old, or if too many deletions
// happened since that count.
func (g *Guard) measureScale(ctx context.Context, cluster *clusterv1alpha1.Cluster) (guard.Bursts, clusterLosses, error) {
	now, c := g.now(), g.counts
	c.mu.Lock()
	deletions := c.forCluster(cluster.Name)
	lastSurvey, all, open := deletions.lastSurvey, deletions.total.Count(now), deletions.unexplained.Count(now)
	c.mu.Unlock()
	if now.Sub(lastSurvey.takenAt) > maxSurveyAge || all-lastSurvey.total >= g.limits.Cluster.MinDeletions {
		fresh, err := g.surveyWorks(ctx, cluster)
		if err != nil {
			return guard.Bursts{}, nil, err
		}
		fresh.takenAt, fresh.total, fresh.unexplained = now, all, open
		lastSurvey = fresh
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	deletions = c.forCluster(cluster.Name)
	deletions.lastSurvey = lastSurvey
	// Finished deletions are added, because the survey does not contain the deletions that began
	// after it. A deletion that was pending in the survey and has finished since therefore counts
	// twice, for one second at most.
	clusterBurst := guard.Burst{Unexplained: lastSurvey.pending + deletions.unexplained.Count(now), Works: lastSurvey.works + lastSurvey.total}
	scale, losses := c.fleetScale(cluster.Name, clusterBurst, now)
	return scale, losses, nil
}

// fleetScale adds up the unexplained deletions of all clusters. The caller holds d.mu.
func (d *deletionCounts) fleetScale(name string, clusterBurst guard.Burst, now time.Time) (guard.Bursts, clusterLosses) {
	scale := guard.Bursts{Cluster: clusterBurst, Fleet: clusterBurst, Clusters: 1}
	losses := clusterLosses{{name, clusterBurst.Unexplained}}
	for other, deletions := range d.clusters {
		burst, loses := deletions.burst(now)
		if other == name || !loses {
			continue
		}
		scale.Clusters++
		scale.Fleet.Unexplained += burst.Unexplained
		scale.Fleet.Works += burst.Works
		losses = append(losses, clusterLoss{other, burst.Unexplained})
	}
	slices.SortFunc(losses, func(a, b clusterLoss) int {
		return cmp.Or(cmp.Compare(b.unexplained, a.unexplained), cmp.Compare(a.cluster, b.cluster))
	})
	return scale, losses
}

// burst returns the unexplained deletions of a cluster: those in its last survey and those that
// finished after the survey. It returns false if there are none.
func (c *clusterDeletions) burst(now time.Time) (guard.Burst, bool) {
	open, pending := c.unexplained.Count(now), 0
	if now.Sub(c.lastSurvey.takenAt) <= guard.Window {
		pending = max(0, c.lastSurvey.pending-max(0, open-c.lastSurvey.unexplained))
	}
	return guard.Burst{Unexplained: open + pending, Works: c.lastSurvey.works + c.lastSurvey.total}, open+pending > 0
}

// surveyWorks counts the Works of a cluster, and the Works among them that are being deleted
// without an explanation. It does not count Works whose binding is deleted, because each of those
// needs its own proof.
func (g *Guard) surveyWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) (workSurvey, error) {
	works := &workv1alpha1.WorkList{}
	if err := g.karmadaCache.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return workSurvey{}, fmt.Errorf("counting the Works of cluster %q: %w", cluster.Name, err)
	}
	found := workSurvey{}
	for i := range works.Items {
		karmadaWork := &works.Items[i]
		if g.counts.isSettled(karmadaWork) {
			continue
		}
		found.works++
		if karmadaWork.DeletionTimestamp == nil {
			continue
		}
		facts, err := g.collectEvidence(ctx, cluster, karmadaWork)
		if err != nil {
			return workSurvey{}, err
		}
		if facts.Owner == guard.OwnerDropsWork && guard.IsUnexplained(facts) && !facts.Confirmed {
			found.pending++
		}
	}
	return found, nil
}
