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

// look is what one pass finds out about the surroundings of a binding, when it is
// asked for.
type look struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one pass
	r     *reconciler
	bound binding.Object
	now   time.Time
	// err is the first thing that could not be read; then the pass decides nothing.
	err error
	// asked are the clusters that the workload is said to be healthy in.
	asked map[string]bool
	// soon is when to look again at what is about to be known; zero for never.
	soon time.Duration
}

func (r *reconciler) look(ctx context.Context, bound binding.Object) *look {
	return &look{ctx: ctx, r: r, bound: bound, now: r.now(), asked: map[string]bool{}}
}

func (l *look) circumstances() failover.Circumstances {
	return failover.Circumstances{
		Now: l.now, Timeout: l.r.options.Timeout,
		Proven: l.proven, Emptied: l.emptied, Removed: l.removed, Habitable: l.habitable,
	}
}

// again asks for another look after a while.
func (l *look) again(after time.Duration) {
	if l.soon == 0 || after < l.soon {
		l.soon = after
	}
}

// next is when the binding is looked at again if nothing happens; 0 is never.
func (l *look) next(outcome failover.Outcome) time.Duration {
	if len(outcome.Tasks) == 0 {
		return 0
	}
	if !outcome.Next.IsZero() {
		l.again(max(outcome.Next.Sub(l.now), time.Millisecond))
	}
	return l.soon
}

// conclude forgets since when the workload has been healthy where it is no more.
func (l *look) conclude() { l.r.steady.keep(client.ObjectKeyFromObject(l.bound), l.asked) }

func (l *look) failed(err error) bool {
	if l.err == nil {
		l.err = err
	}
	return false
}

// proven tells that the health in a target can be relied on: its Work is of the
// present generation of the binding, the member has it, the cluster can be asked,
// and it has been so for a while.
func (l *look) proven(cluster string) bool {
	l.asked[cluster] = true
	if !l.ready(cluster) {
		delete(l.asked, cluster)
		return false
	}
	if !l.present(cluster) {
		delete(l.asked, cluster)
		l.again(glance)
		return false
	}
	wait := l.r.steady.wait(client.ObjectKeyFromObject(l.bound), l.bound.GetUID(), cluster, l.now)
	if wait > 0 {
		l.again(wait)
	}
	return wait <= 0
}

// present tells that a target was given what the binding says now, and has it.
func (l *look) present(cluster string) bool {
	if l.r.renderings.Concluded(client.ObjectKeyFromObject(l.bound), l.bound.GetUID()) < l.bound.GetGeneration() {
		return false
	}
	works, err := l.works(cluster)
	if err != nil {
		return l.failed(err)
	}
	for i := range works {
		applied := conditions.Get(works[i].Status.Conditions, workv1alpha1.WorkApplied)
		if works[i].DeletionTimestamp != nil || applied == nil || applied.Status != metav1.ConditionTrue ||
			applied.ObservedGeneration != 0 && applied.ObservedGeneration != works[i].Generation {
			return false
		}
	}
	return len(works) > 0
}

// works are those that the binding has in a cluster, in deletion or not. They are
// shared with the cache. A Work of another binding that has the same id is left out.
func (l *look) works(cluster string) ([]workv1alpha1.Work, error) {
	id := binding.PermanentID(l.bound)
	if id == "" {
		return nil, fmt.Errorf("binding %s has no label %s", client.ObjectKeyFromObject(l.bound), binding.PermanentIDLabel(l.bound))
	}
	list := &workv1alpha1.WorkList{}
	err := l.r.karmada.List(l.ctx, list, client.InNamespace(work.ExecutionNamespace(cluster)),
		client.MatchingLabels{binding.PermanentIDLabel(l.bound): id}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Works in cluster %s: %w", cluster, err)
	}
	return slices.DeleteFunc(list.Items, func(each workv1alpha1.Work) bool { return !binding.IsOf(&each, l.bound) }), nil
}

// emptied tells that no Work of the binding is left in a cluster, or that an
// administrator gave the cluster up.
func (l *look) emptied(cluster string) bool {
	stored, err := l.cluster(cluster)
	if err != nil {
		return l.failed(err)
	}
	if stored != nil && stored.DeclaredDead() {
		return true
	}
	works, err := l.works(cluster)
	if err != nil {
		return l.failed(err)
	}
	if len(works) > 0 && l.purging(cluster) {
		l.again(purgePoll)
	}
	return len(works) == 0
}

// purging tells that the copy in a cluster is to be gone before others come.
func (l *look) purging(cluster string) bool {
	for _, task := range l.bound.BindingSpec().GracefulEvictionTasks {
		if task.FromCluster == cluster && task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			return true
		}
	}
	return false
}

// removed tells that a cluster is not registered. The cache alone does not prove it.
func (l *look) removed(cluster string) bool {
	stored, err := l.cluster(cluster)
	if err != nil || stored != nil {
		return l.failed(err)
	}
	err = l.r.live.Get(l.ctx, types.NamespacedName{Name: cluster}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		err = fmt.Errorf("asking for cluster %s: %w", cluster, err)
	}
	return l.failed(err)
}

// habitable tells that nothing drives the workload out of a cluster.
func (l *look) habitable(cluster string) bool {
	stored, err := l.cluster(cluster)
	if err != nil || stored == nil || !l.ready(cluster) {
		return l.failed(err)
	}
	stay, known := failover.StayIn(stored, l.bound)
	return known && !stay.Over(l.now)
}

func (l *look) ready(cluster string) bool {
	stored, err := l.cluster(cluster)
	if err != nil || stored == nil {
		return l.failed(err)
	}
	return stored.DeletionTimestamp == nil &&
		conditions.Is(stored.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// cluster is the Cluster that the cache has, nil for none.
func (l *look) cluster(name string) (*clusterv1alpha1.Cluster, error) {
	stored := &clusterv1alpha1.Cluster{}
	err := l.r.karmada.Get(l.ctx, types.NamespacedName{Name: name}, stored, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return stored, nil
}

// steady remembers since when the workloads of bindings under eviction have been
// healthy in their clusters. Losing it with the process only takes a little longer.
type steady struct {
	// least is how long that must be, settle how long a process that starts believes
	// nobody.
	least, settle time.Duration

	mu    sync.Mutex
	since map[types.NamespacedName]healthy
	// began is when this process first asked.
	began time.Time
}

type healthy struct {
	uid types.UID
	in  map[string]time.Time
}

func newSteady(least, settle time.Duration) *steady {
	return &steady{least: least, settle: settle, since: map[types.NamespacedName]healthy{}}
}

// wait is how long a workload that is healthy now must stay so to count.
func (s *steady) wait(key types.NamespacedName, uid types.UID, cluster string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = now
	}
	known, ok := s.since[key]
	if !ok || known.uid != uid {
		known = healthy{uid: uid, in: map[string]time.Time{}}
		s.since[key] = known
	}
	if _, ok := known.in[cluster]; !ok {
		known.in[cluster] = now
	}
	return max(known.in[cluster].Add(s.least).Sub(now), s.began.Add(s.settle).Sub(now))
}

// keep forgets the clusters of a binding that are not among those given.
func (s *steady) keep(key types.NamespacedName, clusters map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cluster := range s.since[key].in {
		if !clusters[cluster] {
			delete(s.since[key].in, cluster)
		}
	}
	if len(s.since[key].in) == 0 {
		delete(s.since, key)
	}
}

func (s *steady) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, key)
}
