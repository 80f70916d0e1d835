package objectcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/registries"
)

// evaluator decides which sources are watched. Its evaluation runs in one goroutine.
type evaluator struct {
	cache       *Cache
	connections *connections
	group       sync.WaitGroup
	// pageSlots limits the pages that are read at the same time.
	pageSlots chan struct{}
	// dirty has a value if clusters or registries changed.
	dirty chan struct{}

	// pending contains the objects whose evaluation failed. Only the evaluation uses it.
	pending map[string]bool

	// dirtyMu guards the names of changed objects.
	dirtyMu                        sync.Mutex
	dirtyClusters, dirtyRegistries map[string]bool

	// isChanged is true if the evaluation that runs changed its results.
	isChanged bool

	// mu guards the results of the evaluation, which other goroutines read.
	mu         sync.RWMutex
	registries map[string]*registries.Registry
	clusters   map[string]*clusterWatches
}

func newEvaluator(c *Cache) *evaluator {
	return &evaluator{
		cache: c, connections: &connections{members: c.options.Members, open: map[string]*connection{}, closing: map[string]chan struct{}{}}, dirty: make(chan struct{}, 1),
		pageSlots:     make(chan struct{}, concurrentPages),
		dirtyClusters: map[string]bool{}, dirtyRegistries: map[string]bool{}, pending: map[string]bool{},
		registries: map[string]*registries.Registry{}, clusters: map[string]*clusterWatches{},
	}
}

// NotifyCluster tells Run that a Cluster was created, changed or deleted. It returns at once.
func (c *Cache) NotifyCluster(name string) { c.watches.notify(c.watches.dirtyClusters, name) }

// NotifyRegistry tells Run that a ResourceRegistry was created, changed or deleted. It returns at once.
func (c *Cache) NotifyRegistry(name string) { c.watches.notify(c.watches.dirtyRegistries, name) }

func (w *evaluator) notify(names map[string]bool, name string) {
	w.dirtyMu.Lock()
	names[name] = true
	w.dirtyMu.Unlock()
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// take returns the changed names and forgets them.
func (w *evaluator) take(names map[string]bool) []string {
	w.dirtyMu.Lock()
	defer w.dirtyMu.Unlock()
	taken := slices.Sorted(maps.Keys(names))
	clear(names)
	return taken
}

// Run watches the kinds that the registries select in members, until ctx ends. Options.Karmada must be
// able to read all Clusters and ResourceRegistries when Run is called. NotifyCluster and
// NotifyRegistry report later changes. Run ends all watches before it returns.
func (c *Cache) Run(ctx context.Context) error {
	if c.options.Karmada == nil || c.options.Members == nil {
		return errors.New("running the cache of member objects: Options.Karmada and Options.Members must be set")
	}
	w := c.watches
	defer w.group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for attempt := 1; !w.markAll(ctx); attempt++ {
		waitFor(ctx, min(c.options.Retry.Base<<min(attempt, 20), c.options.Retry.Max))
		if ctx.Err() != nil {
			return nil
		}
	}
	w.evaluate(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.dirty:
			w.evaluate(ctx)
		}
	}
}

func waitFor(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// markAll marks all registries and clusters as changed. It returns false if they cannot be read.
func (w *evaluator) markAll(ctx context.Context) bool {
	stored, clusters := &searchv1alpha1.ResourceRegistryList{}, &clusterv1alpha1.ClusterList{}
	if err := errors.Join(w.cache.options.Karmada.List(ctx, stored), w.cache.options.Karmada.List(ctx, clusters)); err != nil {
		klog.FromContext(ctx).Error(err, "Reading Clusters and ResourceRegistries, is retried")
		return false
	}
	w.dirtyMu.Lock()
	defer w.dirtyMu.Unlock()
	for i := range stored.Items {
		w.dirtyRegistries[stored.Items[i].Name] = true
	}
	for i := range clusters.Items {
		w.dirtyClusters[clusters.Items[i].Name] = true
	}
	return true
}

// evaluate starts and stops watches after changes.
func (w *evaluator) evaluate(ctx context.Context) {
	for _, name := range w.take(w.dirtyRegistries) {
		err := w.evaluateRegistry(ctx, name)
		if w.recordPending("registry "+name, err); err != nil {
			w.retryLater(ctx, err, w.dirtyRegistries, name)
		}
	}
	kinds := registries.RegisteredKinds(w.sortedRegistries())
	for _, kind := range kinds {
		if w.cache.KindOf(kind) == nil {
			w.isChanged = true
			w.cache.SetKind(kind, w.guessResource(kind), !isClusterScoped(kind))
		}
	}
	for _, name := range w.take(w.dirtyClusters) {
		err := w.evaluateCluster(ctx, name)
		if w.recordPending("cluster "+name, err); err != nil {
			w.retryLater(ctx, err, w.dirtyClusters, name)
		}
	}
	for _, existing := range w.cache.Kinds() {
		if !slices.Contains(kinds, existing.kind) {
			w.cache.RemoveKind(existing.kind)
			w.isChanged = true
		}
	}
	if w.isChanged {
		w.isChanged = false
		w.cache.states.notify()
	}
	if len(w.pending) == 0 {
		w.cache.SetEvaluated()
	}
}

// recordPending records whether an object waits for its evaluation after an error. Until every object
// was evaluated once, a source that is not selected may still be needed.
func (w *evaluator) recordPending(object string, err error) {
	if err == nil {
		delete(w.pending, object)
		return
	}
	w.pending[object] = true
}

// retryLater evaluates an object again that could not be read.
func (w *evaluator) retryLater(ctx context.Context, err error, names map[string]bool, name string) {
	klog.FromContext(ctx).Error(err, "Evaluating what is cached, is retried")
	w.group.Go(func() {
		waitFor(ctx, w.cache.options.Retry.Max/10)
		w.notify(names, name)
	})
}

// evaluateRegistry reads a registry, and marks the clusters that its old or new state selects.
func (w *evaluator) evaluateRegistry(ctx context.Context, name string) error {
	stored := &searchv1alpha1.ResourceRegistry{}
	err := w.cache.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ResourceRegistry %q: %w", name, err)
	}
	var changed *registries.Registry
	if err == nil && stored.DeletionTimestamp == nil {
		changed = registries.Compile(stored.DeepCopy())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.registries[name]
	if old != nil && changed != nil && old.HasSameSpec(changed) {
		return nil
	}
	w.isChanged = true
	delete(w.registries, name)
	if changed != nil {
		w.registries[name] = changed
	}
	w.dirtyMu.Lock()
	defer w.dirtyMu.Unlock()
	for _, c := range w.clusters {
		if old != nil && old.Matches(c.cluster) || changed != nil && changed.Matches(c.cluster) {
			w.dirtyClusters[c.cluster.Name] = true
		}
	}
	return nil
}

// evaluateCluster reads a cluster, and changes its watches.
func (w *evaluator) evaluateCluster(ctx context.Context, name string) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := w.cache.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, cluster)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	known := w.clusters[name]
	if apierrors.IsNotFound(err) || known != nil && known.cluster.UID != cluster.UID {
		w.removeCluster(name)
		known = nil
	}
	if err != nil {
		// The member waits for its own watches to end.
		w.group.Go(w.connections.beginClose(name))
		return nil
	}
	if known == nil {
		known = newClusterWatches(w)
	}
	selection := registries.Select(cluster, w.sortedRegistries())
	w.isChanged = w.isChanged || known.cluster == nil || !equality.Semantic.DeepEqual(known.selection, selection)
	known.apply(ctx, cluster, selection)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters[name] = known
	known.cluster, known.selection = cluster, selection
	return nil
}

// removeCluster ends all watches of a cluster that is gone, and removes its objects. If a new cluster
// with the same name is there already, the first use of its connection closes the old one.
func (w *evaluator) removeCluster(name string) {
	known := w.clusters[name]
	if known == nil {
		return
	}
	w.mu.Lock()
	delete(w.clusters, name)
	w.mu.Unlock()
	w.isChanged = true
	known.removeAll()
}

// sortedRegistries returns all registries. Only the goroutine of the evaluation calls it.
func (w *evaluator) sortedRegistries() []*registries.Registry {
	all := make([]*registries.Registry, 0, len(w.registries))
	for _, name := range slices.Sorted(maps.Keys(w.registries)) {
		all = append(all, w.registries[name])
	}
	return all
}
