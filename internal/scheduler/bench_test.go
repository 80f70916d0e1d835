package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
)

// memoryStore is an API server and an informer cache in memory. It costs little, so a benchmark
// measures the scheduler. Like the real ones, it copies the objects that it returns, computes the
// content of patches, and sends an event for each write.
type memoryStore struct {
	client.Client // methods that the scheduler does not use panic

	mu      sync.Mutex
	version atomic.Int64
	indexer toolscache.Indexer
	// events are the updates that are not delivered yet.
	events  chan func()
	updated func(older, newer binding.Object)
}

func newMemoryStore() *memoryStore {
	indexers := toolscache.Indexers{bindingsByClusterKey.Name: func(object any) ([]string, error) {
		return clusterKeysOf(object.(client.Object)), nil
	}}
	return &memoryStore{events: make(chan func(), 1000), updated: func(_, _ binding.Object) {}, indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)}
}

func (m *memoryStore) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	found, exists, err := m.indexer.GetByKey(key.String())
	if err != nil || !exists {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	applied := client.GetOptions{}
	applied.ApplyOptions(options)
	if applied.UnsafeDisableDeepCopy != nil && *applied.UnsafeDisableDeepCopy {
		*into.(*workv1alpha2.ResourceBinding) = *found.(*workv1alpha2.ResourceBinding)
	} else {
		found.(*workv1alpha2.ResourceBinding).DeepCopyInto(into.(*workv1alpha2.ResourceBinding))
	}
	return nil
}

func (m *memoryStore) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, ok := into.(*workv1alpha2.ResourceBindingList)
	if !ok {
		return nil // there are no ClusterResourceBindings
	}
	applied := (&client.ListOptions{}).ApplyOptions(options)
	key, _ := applied.FieldSelector.RequiresExactMatch(bindingsByClusterKey.Name)
	found, err := m.indexer.ByIndex(bindingsByClusterKey.Name, key)
	for _, object := range found {
		list.Items = append(list.Items, *object.(*workv1alpha2.ResourceBinding))
	}
	return err
}

func (m *memoryStore) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return workv1alpha2.GroupVersion.WithKind(workv1alpha2.ResourceKindResourceBinding), nil
}

func (m *memoryStore) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return m.store(object, patch, 1)
}

func (m *memoryStore) Status() client.SubResourceWriter { return memoryStatus{store: m} }

type memoryStatus struct {
	client.SubResourceWriter

	store *memoryStore
}

func (m memoryStatus) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return m.store.store(object, patch, 0)
}

// store applies a merge patch that removes no field, sets the version and the generation, and sends
// the event. It returns the metadata in object.
func (m *memoryStore) store(object client.Object, patch client.Patch, generations int64) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	older, _, err := m.indexer.GetByKey(client.ObjectKeyFromObject(object).String())
	if err != nil {
		return err
	}
	newer := older.(*workv1alpha2.ResourceBinding).DeepCopy()
	if err := json.Unmarshal(data, newer); err != nil {
		return err
	}
	newer.ResourceVersion = strconv.FormatInt(m.version.Add(1), 10)
	newer.Generation += generations
	newer.ObjectMeta.DeepCopyInto(&object.(*metav1.PartialObjectMetadata).ObjectMeta)
	if err := m.indexer.Update(newer); err != nil {
		return err
	}
	m.events <- func() { m.updated(older.(*workv1alpha2.ResourceBinding), newer) }
	return nil
}

// benchCluster returns a cluster with 50 API groups and a resource summary.
func benchCluster(i int) *clusterv1alpha1.Cluster {
	cluster := member(fmt.Sprintf("member-%03d", i))
	cluster.Labels = map[string]string{"tier": "gold", "group": fmt.Sprintf("group-%d", i%10), "environment": fmt.Sprintf("env-%d", i%3)}
	for group := range 49 {
		enablement := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%02d.example.io/v1", group)}
		for kind := range 5 {
			enablement.Resources = append(enablement.Resources, clusterv1alpha1.APIResource{Name: fmt.Sprintf("kind%ds", kind), Kind: fmt.Sprintf("Kind%d", kind)})
		}
		cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, enablement)
	}
	cluster.Spec.Region = fmt.Sprintf("region-%d", i%5)
	if i%10 == 9 {
		cluster.Spec.Taints = []corev1.Taint{{Key: "maintenance", Value: "planned", Effect: corev1.TaintEffectNoSchedule}}
	}
	nodes := int64(20 + i)
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(nodes*64, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(nodes*256<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(nodes*110, resource.DecimalSI),
	}}
	return cluster
}

// benchBinding returns a pending binding of a Deployment. In turn, the replicas are divided by
// dynamic weight, aggregated, or duplicated to three clusters.
func benchBinding(i int) *workv1alpha2.ResourceBinding {
	name := fmt.Sprintf("web-%05d-deployment", i)
	return newBinding(named(name), func(bound *workv1alpha2.ResourceBinding) {
		bound.UID, bound.ResourceVersion = types.UID(name), "1"
		bound.Spec.Replicas = int32(2 + i%20)
		bound.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		}
		bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		}
		switch i % 3 {
		case 0:
			divided(bound)
			bound.Spec.Placement.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
		case 1:
			aggregated(bound)
		default:
			bound.Spec.Placement.ClusterAffinity.LabelSelector = nil
			for j := range 3 {
				bound.Spec.Placement.ClusterAffinity.ClusterNames = append(bound.Spec.Placement.ClusterAffinity.ClusterNames, fmt.Sprintf("member-%03d", (i+j)%50))
			}
		}
	})
}

// newBenchScheduler returns a scheduler with a memoryStore, clusters and bindings.
func newBenchScheduler(b *testing.B, clusters int, bindings []*workv1alpha2.ResourceBinding) (*source, *memoryStore) {
	b.Helper()
	store, o := newMemoryStore(), DefaultOptions()
	measured, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	s := &scheduler{
		options: o, karmada: store, liveReader: store, events: loop.NewEvents(&record.FakeRecorder{}), clusters: newClusterSnapshots(),
		estimators: []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{Models: true}}},
		backoff:    newFailureBackoff(o), ownWrites: loop.NewWrites[request](nil), reportedFailures: newReportedFailures(),
		unreported: newUnreportedTracker(), metrics: measured, now: time.Now,
	}
	for i := range clusters {
		s.clusters.put(benchCluster(i), true)
	}
	for _, bound := range bindings {
		if err := store.indexer.Add(bound); err != nil {
			b.Fatal(err)
		}
	}
	queue := loop.WithSafeShutdown(priorityqueue.New(b.Name(), func(options *priorityqueue.Opts[request]) {
		options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](o.BaseDelay, o.MaxDelay)
	}))
	b.Cleanup(queue.ShutDown)
	watch := &source{scheduler: s, ctx: b.Context(), queue: queue}
	store.updated = watch.handleBindingUpdated
	go func() {
		for deliver := range store.events {
			deliver()
		}
	}()
	b.Cleanup(func() { close(store.events) })
	return watch, store
}

// BenchmarkPendingBindings schedules 5 000 pending bindings over 50 clusters with the workers of
// the scheduler, from the queue to the observed writes.
func BenchmarkPendingBindings(b *testing.B) {
	const count = 5000
	b.ReportAllocs()
	scheduled := 0
	for b.Loop() {
		b.StopTimer()
		bindings := make([]*workv1alpha2.ResourceBinding, count)
		for i := range bindings {
			bindings[i] = benchBinding(i)
		}
		watch, store := newBenchScheduler(b, 50, bindings)
		b.StartTimer()
		for _, bound := range bindings {
			watch.handleBindingAdded(bound, true)
		}
		process(b, watch, store, 2*count)
		b.StopTimer()
		for _, object := range store.indexer.List() {
			if !conditions.HasStatus(object.(*workv1alpha2.ResourceBinding).Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue) {
				b.Fatalf("%s is not scheduled", object.(*workv1alpha2.ResourceBinding).Name)
			}
		}
		if written := store.version.Load(); written != 2*count {
			b.Fatalf("%d writes, want %d", written, 2*count)
		}
		scheduled += count
		b.StartTimer()
	}
	b.ReportMetric(float64(scheduled)/b.Elapsed().Seconds(), "bindings/s")
}

// process runs the workers of the scheduler until the store has received the given number of writes.
func process(b *testing.B, watch *source, store *memoryStore, writes int64) {
	// The log lines of a component are not part of the measurement.
	ctx := klog.NewContext(b.Context(), logr.Discard())
	var workers sync.WaitGroup
	for range watch.scheduler.options.Workers {
		workers.Go(func() {
			for {
				r, shutDown := watch.queue.Get()
				if shutDown {
					return
				}
				if _, err := watch.scheduler.Reconcile(ctx, r); err != nil {
					b.Error(err)
				}
				watch.queue.Done(r)
				if store.version.Load() >= writes {
					watch.queue.ShutDown()
				}
			}
		})
	}
	workers.Wait()
}

// BenchmarkClusterLabelChange changes one label of one of 50 clusters while 10 000 bindings are
// scheduled. 1 000 of them select clusters by this label. It measures the time from the event of
// the cluster until the queue contains the affected bindings.
func BenchmarkClusterLabelChange(b *testing.B) {
	const count, affected = 10000, 1000
	bindings := make([]*workv1alpha2.ResourceBinding, count)
	for i := range bindings {
		bindings[i] = benchBinding(i)
		selector := map[string]string{"group": fmt.Sprintf("group-%d", i%10)}
		bindings[i].Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: selector}}
	}
	watch, _ := newBenchScheduler(b, 50, bindings)
	before := benchCluster(60)
	before.Labels["group"] = "none"
	watch.handleClusterAdded(before, true)
	after := before.DeepCopy()
	after.Labels = map[string]string{"group": "group-3"}
	b.ReportAllocs()
	for b.Loop() {
		watch.handleClusterUpdated(before, after)
		if queued := watch.queue.Len(); queued != affected {
			b.Fatalf("%d bindings are queued, want %d", queued, affected)
		}
		b.StopTimer()
		for range affected {
			r, _ := watch.queue.Get()
			watch.queue.Done(r)
		}
		b.StartTimer()
	}
}
