package gracefuleviction

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/work"
)

// evaluation reads the state of the clusters and Works of a binding when a pass needs it. It is
// used for one pass.
type evaluation struct {
	ctx        context.Context //nolint:containedctx // valid for one pass
	reconciler *reconciler
	bound      binding.Object
	rendering  work.Rendering
	now        time.Time
	// firstErr is the first error of a read. If it is set, the pass makes no decision.
	firstErr error
	// healthyClusters contains the clusters that report the workload as healthy.
	healthyClusters map[string]bool
	// requeueAfter is the shortest delay of the next pass that was requested, or 0 if none was
	// requested.
	requeueAfter time.Duration
}

func (e *evaluation) circumstances() failover.Observations {
	return failover.Observations{
		Now: e.now, Timeout: e.reconciler.options.Timeout,
		IsStatusCurrent: e.isHealthProven, IsCopyGone: e.isCopyGone, IsUnregistered: e.isUnregistered, CanRunWorkload: e.canKeepWorkload,
	}
}

// requeueSoon requests that the next pass starts after the given delay or earlier.
func (e *evaluation) requeueSoon(after time.Duration) {
	if e.requeueAfter == 0 || after < e.requeueAfter {
		e.requeueAfter = after
	}
}

// requeueDelay returns the delay until the next pass if nothing changes. 0 means that no further
// pass is needed.
func (e *evaluation) requeueDelay(outcome failover.Outcome) time.Duration {
	if len(outcome.Tasks) == 0 {
		return 0
	}
	if !outcome.NextCheck.IsZero() {
		e.requeueSoon(max(outcome.NextCheck.Sub(e.now), time.Millisecond))
	}
	return e.requeueAfter
}

func (e *evaluation) recordError(err error) bool {
	if e.firstErr == nil {
		e.firstErr = err
	}
	return false
}

// isHealthProven reports whether the workload is proven to be healthy in a target cluster. This is
// the case if the Work is rendered from the current spec of the binding, the Work is applied, the
// cluster is ready, and the workload has been healthy for the minimum time.
func (e *evaluation) isHealthProven(cluster string) bool {
	e.healthyClusters[cluster] = true
	if !e.isReady(cluster) {
		delete(e.healthyClusters, cluster)
		return false
	}
	if !e.isCurrentApplied(cluster) {
		delete(e.healthyClusters, cluster)
		e.requeueSoon(applyRecheckDelay)
		return false
	}
	wait := e.reconciler.healthTracker.remainingWait(client.ObjectKeyFromObject(e.bound), e.bound.GetUID(), cluster, e.now)
	if wait > 0 {
		e.requeueSoon(wait)
	}
	return wait <= 0
}

// isCurrentApplied reports whether the Work of the binding in a cluster is rendered from the
// current spec of the binding, and is applied.
func (e *evaluation) isCurrentApplied(cluster string) bool {
	works, err := e.listWorks(cluster)
	if err != nil {
		return e.recordError(err)
	}
	return e.rendering.AreApplied(works)
}

// listWorks returns the Works of the binding in a cluster, including Works that are being deleted.
// It leaves out Works of another binding with the same ID. The Works are shared with the cache and
// must not be changed.
func (e *evaluation) listWorks(cluster string) ([]workv1alpha1.Work, error) {
	id := binding.PermanentID(e.bound)
	if id == "" {
		return nil, fmt.Errorf("binding %s has no label %s", client.ObjectKeyFromObject(e.bound), binding.PermanentIDLabel(e.bound))
	}
	list := &workv1alpha1.WorkList{}
	err := e.reconciler.karmada.List(e.ctx, list, client.InNamespace(work.ExecutionNamespace(cluster)),
		client.MatchingLabels{binding.PermanentIDLabel(e.bound): id}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Works in cluster %s: %w", cluster, err)
	}
	return slices.DeleteFunc(list.Items, func(each workv1alpha1.Work) bool { return !binding.BelongsTo(&each, e.bound) }), nil
}

// isCopyGone reports whether the cluster has no Work of the binding, or an administrator declared
// the cluster dead.
func (e *evaluation) isCopyGone(cluster string) bool {
	stored, err := e.readCluster(cluster)
	if err != nil {
		return e.recordError(err)
	}
	if stored != nil && stored.DeclaredDead() {
		return true
	}
	works, err := e.listWorks(cluster)
	if err != nil {
		return e.recordError(err)
	}
	if len(works) > 0 && e.isPurgedDirectly(cluster) {
		e.requeueSoon(purgePollInterval)
	}
	return len(works) == 0
}

// isPurgedDirectly reports whether the copy in a cluster must be deleted before its replacement
// is created.
func (e *evaluation) isPurgedDirectly(cluster string) bool {
	for _, task := range e.bound.BindingSpec().GracefulEvictionTasks {
		if task.FromCluster == cluster && task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			return true
		}
	}
	return false
}

// isUnregistered reports whether a cluster is not registered. If the cache does not contain the
// Cluster, it reads from the API server, because a cache does not prove that an object does not
// exist.
func (e *evaluation) isUnregistered(cluster string) bool {
	stored, err := e.readCluster(cluster)
	if err != nil || stored != nil {
		return e.recordError(err)
	}
	err = e.reconciler.live.Get(e.ctx, types.NamespacedName{Name: cluster}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		err = fmt.Errorf("reading cluster %s from the API server: %w", cluster, err)
	}
	return e.recordError(err)
}

// canKeepWorkload reports whether the workload may stay in a cluster: the cluster is ready, and no
// taint of the cluster evicts the workload now.
func (e *evaluation) canKeepWorkload(cluster string) bool {
	stored, err := e.readCluster(cluster)
	if err != nil || stored == nil || !e.isReady(cluster) {
		return e.recordError(err)
	}
	stay, known := failover.EvictionDeadline(stored, e.bound)
	return known && !stay.IsOver(e.now)
}

func (e *evaluation) isReady(cluster string) bool {
	stored, err := e.readCluster(cluster)
	if err != nil || stored == nil {
		return e.recordError(err)
	}
	return stored.DeletionTimestamp == nil &&
		conditions.HasStatus(stored.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// readCluster returns the Cluster from the cache, or nil if the cache does not contain it.
func (e *evaluation) readCluster(name string) (*clusterv1alpha1.Cluster, error) {
	stored := &clusterv1alpha1.Cluster{}
	err := e.reconciler.karmada.Get(e.ctx, types.NamespacedName{Name: name}, stored, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return stored, nil
}

// healthTracker records since when workloads have been healthy in the clusters of bindings with
// evictions. If the process ends, the records are lost, and evictions take a little longer.
type healthTracker struct {
	// minHealthyTime is how long a workload must be healthy. startupDelay is the time after the
	// start of the process in which no health is used for decisions.
	minHealthyTime, startupDelay time.Duration

	mu      sync.Mutex
	records map[types.NamespacedName]healthRecord
	// startedAt is the time of the first call of remainingWait in this process.
	startedAt time.Time
}

type healthRecord struct {
	uid          types.UID
	healthySince map[string]time.Time
}

func newHealthTracker(minHealthyTime, startupDelay time.Duration) *healthTracker {
	return &healthTracker{minHealthyTime: minHealthyTime, startupDelay: startupDelay, records: map[types.NamespacedName]healthRecord{}}
}

// remainingWait returns how much longer a healthy workload must stay healthy before its health is
// used for decisions.
func (h *healthTracker) remainingWait(key types.NamespacedName, uid types.UID, cluster string, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.startedAt.IsZero() {
		h.startedAt = now
	}
	record, ok := h.records[key]
	if !ok || record.uid != uid {
		record = healthRecord{uid: uid, healthySince: map[string]time.Time{}}
		h.records[key] = record
	}
	if _, ok := record.healthySince[cluster]; !ok {
		record.healthySince[cluster] = now
	}
	return max(record.healthySince[cluster].Add(h.minHealthyTime).Sub(now), h.startedAt.Add(h.startupDelay).Sub(now))
}

// retainClusters deletes the records of a binding for all clusters that are not in the given set.
func (h *healthTracker) retainClusters(key types.NamespacedName, clusters map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for cluster := range h.records[key].healthySince {
		if !clusters[cluster] {
			delete(h.records[key].healthySince, cluster)
		}
	}
	if len(h.records[key].healthySince) == 0 {
		delete(h.records, key)
	}
}

func (h *healthTracker) deleteBinding(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.records, key)
}
