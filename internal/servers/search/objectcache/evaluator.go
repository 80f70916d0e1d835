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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/registries"
)

// evaluator decides which sources are watched. Its evaluation runs in one goroutine.
type evaluator struct {
	cache *Cache
	group sync.WaitGroup
	// pageSlots limits the pages that are read at the same time.
	pageSlots chan struct{}
	// queue holds the Clusters and ResourceRegistries that changed.
	queue workqueue.TypedInterface[changedObject]

	// pending contains the objects of the first list that were not evaluated yet, and those whose last
	// evaluation failed. Until it is empty, a source that is not selected may still be needed. Only the
	// evaluation uses it.
	pending map[changedObject]bool
	// isChanged is true if the current evaluation changed its results.
	isChanged bool

	// mu guards the results of the evaluation, which other goroutines read.
	mu         sync.RWMutex
	registries map[string]*registries.Registry
	clusters   map[string]*clusterWatches
}

// changedObject identifies a Cluster or a ResourceRegistry.
type changedObject struct {
	isRegistry bool
	name       string
}

func newEvaluator(c *Cache) *evaluator {
	return &evaluator{
		cache: c, pageSlots: make(chan struct{}, concurrentPages), queue: workqueue.NewTyped[changedObject](),
		pending: map[changedObject]bool{}, registries: map[string]*registries.Registry{}, clusters: map[string]*clusterWatches{},
	}
}

// NotifyCluster tells Run that a Cluster was created, changed or deleted. It returns at once.
func (c *Cache) NotifyCluster(name string) { c.evaluator.queue.Add(changedObject{name: name}) }

// NotifyRegistry tells Run that a ResourceRegistry was created, changed or deleted. It returns at once.
func (c *Cache) NotifyRegistry(name string) {
	c.evaluator.queue.Add(changedObject{isRegistry: true, name: name})
}

// Run watches the kinds that the registries select in members, until ctx ends. Options.Karmada must be
// able to read all Clusters and ResourceRegistries when Run is called. NotifyCluster and
// NotifyRegistry report later changes. Run ends all watches before it returns.
func (c *Cache) Run(ctx context.Context) error {
	if c.options.Karmada == nil || c.options.Members == nil {
		return errors.New("running the cache of member objects: Options.Karmada and Options.Members must be set")
	}
	e := c.evaluator
	defer e.group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, e.queue.ShutDown)()
	for attempt := 1; !e.queueAll(ctx); attempt++ {
		waitFor(ctx, min(c.options.Retry.Base<<min(attempt, 20), c.options.Retry.Max))
		if ctx.Err() != nil {
			return nil
		}
	}
	for {
		if len(e.pending) == 0 {
			c.SetEvaluated()
		}
		object, isShutDown := e.queue.Get()
		if isShutDown {
			return nil
		}
		e.evaluate(ctx, object)
		e.queue.Done(object)
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

// queueAll queues all registries, and then all clusters. It returns false if they cannot be read.
func (e *evaluator) queueAll(ctx context.Context) bool {
	stored, clusters := &searchv1alpha1.ResourceRegistryList{}, &clusterv1alpha1.ClusterList{}
	if err := errors.Join(e.cache.options.Karmada.List(ctx, stored), e.cache.options.Karmada.List(ctx, clusters)); err != nil {
		klog.FromContext(ctx).Error(err, "Reading Clusters and ResourceRegistries; retrying")
		return false
	}
	var all []changedObject
	for i := range stored.Items {
		all = append(all, changedObject{isRegistry: true, name: stored.Items[i].Name})
	}
	for i := range clusters.Items {
		all = append(all, changedObject{name: clusters.Items[i].Name})
	}
	for _, object := range all {
		e.pending[object] = true
		e.queue.Add(object)
	}
	return true
}

// evaluate starts and stops watches after a change of an object. If the object cannot be read, its
// evaluation is retried.
func (e *evaluator) evaluate(ctx context.Context, object changedObject) {
	evaluateObject := e.evaluateCluster
	if object.isRegistry {
		evaluateObject = e.evaluateRegistry
	}
	if err := evaluateObject(ctx, object.name); err != nil {
		klog.FromContext(ctx).Error(err, "Evaluating what is cached; retrying")
		e.pending[object] = true
		e.group.Go(func() {
			waitFor(ctx, e.cache.options.Retry.Max/10)
			e.queue.Add(object)
		})
	} else {
		delete(e.pending, object)
	}
	if e.isChanged {
		e.isChanged = false
		e.cache.states.notify()
	}
}

// evaluateRegistry reads a registry, updates the cached kinds, and queues the clusters that the previous or
// the current registry selects.
func (e *evaluator) evaluateRegistry(ctx context.Context, name string) error {
	stored := &searchv1alpha1.ResourceRegistry{}
	err := e.cache.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ResourceRegistry %q: %w", name, err)
	}
	var current *registries.Registry
	if err == nil && stored.DeletionTimestamp == nil {
		current = registries.Compile(stored.DeepCopy())
	}
	previous := e.registries[name]
	if previous != nil && current != nil && previous.HasSameSpec(current) {
		return nil
	}
	e.isChanged = true
	e.mu.Lock()
	delete(e.registries, name)
	if current != nil {
		e.registries[name] = current
	}
	e.mu.Unlock()
	e.updateKinds()
	for _, c := range e.clusters {
		if previous != nil && previous.Matches(c.cluster) || current != nil && current.Matches(c.cluster) {
			e.queue.Add(changedObject{name: c.cluster.Name})
		}
	}
	return nil
}

// updateKinds adds and removes kinds of the cache, so that it has those that the registries name.
func (e *evaluator) updateKinds() {
	kinds := registries.RegisteredKinds(e.sortedRegistries())
	for _, kind := range kinds {
		if e.cache.KindOf(kind) == nil {
			e.cache.SetKind(kind, e.guessResource(kind), !isClusterScoped(kind))
		}
	}
	for _, existing := range e.cache.Kinds() {
		if !slices.Contains(kinds, existing.kind) {
			e.cache.RemoveKind(existing.kind)
		}
	}
}

// evaluateCluster reads a cluster, and changes its watches.
func (e *evaluator) evaluateCluster(ctx context.Context, name string) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := e.cache.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, cluster)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	known := e.clusters[name]
	if apierrors.IsNotFound(err) || known != nil && known.cluster.UID != cluster.UID {
		e.removeCluster(name)
		known = nil
	}
	if err != nil {
		e.cache.options.Members.CloseMember(name)
		return nil
	}
	if known == nil {
		known = newClusterWatches(e)
	}
	selection := registries.Select(cluster, e.sortedRegistries())
	e.isChanged = e.isChanged || known.cluster == nil || !equality.Semantic.DeepEqual(known.selection, selection)
	known.apply(ctx, cluster, selection)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clusters[name] = known
	known.cluster, known.selection = cluster, selection
	return nil
}

// removeCluster ends all watches of a deleted cluster, and removes its objects. If a new cluster has the same
// name, its first watch replaces the connection.
func (e *evaluator) removeCluster(name string) {
	known := e.clusters[name]
	if known == nil {
		return
	}
	e.mu.Lock()
	delete(e.clusters, name)
	e.mu.Unlock()
	e.isChanged = true
	known.removeAll()
}

// sortedRegistries returns all registries. Only the goroutine of the evaluation calls it.
func (e *evaluator) sortedRegistries() []*registries.Registry {
	all := make([]*registries.Registry, 0, len(e.registries))
	for _, name := range slices.Sorted(maps.Keys(e.registries)) {
		all = append(all, e.registries[name])
	}
	return all
}
