package deletionguard

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// releasedWorkTTL is the time within which a watch shows the deletion of a released Work. A Work
// that exists after that time was created again, for example by the restore of a backup.
const releasedWorkTTL = 30 * time.Second

// workTracker tracks the Works whose deletion was decided, and sets the metric that counts the held
// deletions.
type workTracker struct {
	heldGauge *prometheus.GaugeVec

	mu    sync.Mutex
	works map[types.NamespacedName]trackedWork
	// announcedReasons holds, by cluster, the reason of the last event about held deletions in the
	// cluster.
	announcedReasons map[string]string
}

// trackedWork is the state of one Work. A Work of the same name with another UID is not tracked.
type trackedWork struct {
	uid types.UID
	// isSettled is true if the Work needs no further decision: the deletion of its objects is
	// permitted, or the Work was released.
	isSettled bool
	// heldSince is the time at which the deletion was first held, or the zero time.
	heldSince time.Time
	// releasedAt is the time at which the finalizer was removed, or the zero time. The cache may
	// still contain the Work.
	releasedAt time.Time
	// reportedCluster and reportedReason are the labels under which the metric counts the held
	// deletion. They are empty if users are not told about it.
	reportedCluster, reportedReason string
}

func newWorkTracker(registry prometheus.Registerer) (*workTracker, error) {
	t := &workTracker{works: map[types.NamespacedName]trackedWork{}, announcedReasons: map[string]string{},
		heldGauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "karmada_work_deletions_held", Help: "Number of Works whose deletion waits for a confirmation or an explanation.",
		}, []string{"member_cluster", "reason"})}
	if registry == nil {
		return t, nil
	}
	err := loop.RegisterMetric(registry, &t.heldGauge)
	// After the restore of a control plane, the process creates another Guard. The new Guard gets
	// the registered metric of the previous Guard, but has no held deletions yet.
	t.heldGauge.Reset()
	return t, err
}

// update changes the tracked state of a Work.
func (t *workTracker) update(karmadaWork *workv1alpha1.Work, change func(*trackedWork)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(karmadaWork)
	tracked := t.works[key]
	if tracked.uid != karmadaWork.UID {
		t.countReport(tracked, -1)
		tracked = trackedWork{uid: karmadaWork.UID}
	}
	t.countReport(tracked, -1)
	change(&tracked)
	t.countReport(tracked, 1)
	t.works[key] = tracked
}

// countReport adds a number to the metric of the labels under which a Work is counted.
func (t *workTracker) countReport(tracked trackedWork, number float64) {
	if tracked.reportedReason != "" {
		t.heldGauge.WithLabelValues(tracked.reportedCluster, tracked.reportedReason).Add(number)
	}
}

// hold records that the deletion of a Work is held. needsDecision is true if an earlier decision is
// not valid any more.
func (t *workTracker) hold(karmadaWork *workv1alpha1.Work, now time.Time, needsDecision bool) {
	t.update(karmadaWork, func(tracked *trackedWork) {
		if tracked.heldSince.IsZero() {
			tracked.heldSince = now
		}
		tracked.isSettled = tracked.isSettled && !needsDecision
	})
}

// holdAge returns the time since the deletion of a Work was first held.
func (t *workTracker) holdAge(karmadaWork *workv1alpha1.Work, now time.Time) time.Duration {
	if tracked, ok := t.get(karmadaWork); ok && !tracked.heldSince.IsZero() {
		return now.Sub(tracked.heldSince)
	}
	return 0
}

// countHeld counts a Work in the metric of held deletions until the Work is settled or removed.
func (t *workTracker) countHeld(karmadaWork *workv1alpha1.Work, cluster, reason string) {
	t.update(karmadaWork, func(tracked *trackedWork) { tracked.reportedCluster, tracked.reportedReason = cluster, reason })
}

// settle records that a Work needs no further decision.
func (t *workTracker) settle(karmadaWork *workv1alpha1.Work) {
	t.update(karmadaWork, func(tracked *trackedWork) { *tracked = trackedWork{uid: tracked.uid, isSettled: true} })
}

// release records that the finalizer of a Work was removed.
func (t *workTracker) release(karmadaWork *workv1alpha1.Work, now time.Time) {
	t.update(karmadaWork, func(tracked *trackedWork) { *tracked = trackedWork{uid: tracked.uid, isSettled: true, releasedAt: now} })
}

// isReleased reports whether the finalizer of the Work was removed within releasedWorkTTL.
func (t *workTracker) isReleased(karmadaWork *workv1alpha1.Work, now time.Time) bool {
	tracked, ok := t.get(karmadaWork)
	return ok && !tracked.releasedAt.IsZero() && now.Sub(tracked.releasedAt) < releasedWorkTTL
}

func (t *workTracker) isSettled(karmadaWork *workv1alpha1.Work) bool {
	tracked, ok := t.get(karmadaWork)
	return ok && tracked.isSettled
}

func (t *workTracker) get(karmadaWork *workv1alpha1.Work) (trackedWork, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tracked, ok := t.works[client.ObjectKeyFromObject(karmadaWork)]
	return tracked, ok && tracked.uid == karmadaWork.UID
}

func (t *workTracker) remove(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countReport(t.works[key], -1)
	delete(t.works, key)
}

func (t *workTracker) removeCluster(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.works, func(key types.NamespacedName, _ trackedWork) bool {
		return key.Namespace == work.ExecutionNamespace(name)
	})
	delete(t.announcedReasons, name)
	t.heldGauge.DeletePartialMatch(prometheus.Labels{"member_cluster": name})
}

// swapAnnouncedReason stores the reason of an event about the held deletions of a cluster, and
// returns the reason of the previous event.
func (t *workTracker) swapAnnouncedReason(cluster, reason string) (previous string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	previous = t.announcedReasons[cluster]
	t.announcedReasons[cluster] = reason
	return previous
}
