package estimator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/reducedwatch"
	"karmada.io/karmada/internal/domain/nodecapacity"
	"karmada.io/karmada/internal/domain/nodepods"
)

// watches returns the functions that keep the cache up to date until their context ends.
func (s *Server) watches() []func(context.Context) {
	core, replicaSets := s.options.Clients.Objects.CoreV1(), s.options.Clients.Metadata.Resource(appsv1.SchemeGroupVersion.WithResource(replicaSetKind))
	nodes, pods, quotas := core.Nodes(), core.Pods(""), core.ResourceQuotas("")
	all := []func(context.Context){
		runner(s.cache, nodeKind, reducedwatch.Source[*nodecapacity.Node]{
			ListPage:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
			WatchEvents: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return nodes.Watch(ctx, o) },
			Reduce:      reduceNode,
		}, nodeSink{s.cache}),
		runner(s.cache, podKind, reducedwatch.Source[reducedPod]{
			ListPage:      func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			WatchEvents:   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
			FieldSelector: unfinishedPods(),
			Reduce:        reducePod,
		}, podSink{s.cache}),
		runner(s.cache, replicaSetKind, reducedwatch.Source[reducedReplicaSet]{
			ListPage: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return replicaSets.List(ctx, o)
			},
			WatchEvents: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return replicaSets.Watch(ctx, o)
			},
			Reduce: reduceReplicaSet,
		}, replicaSetSink{s.cache}),
	}
	if s.options.Quotas {
		all = append(all, runner(s.cache, quotaKind, reducedwatch.Source[reducedQuota]{
			ListPage:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return quotas.List(ctx, o) },
			WatchEvents: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return quotas.Watch(ctx, o) },
			Reduce:      reduceQuota,
		}, quotaSink{s.cache}))
	}
	return all
}

func runner[T any](c *cache, kind string, source reducedwatch.Source[T], sink reducedwatch.Sink[T]) func(context.Context) {
	return func(ctx context.Context) {
		reducedwatch.Run(ctx, kind+" of the member", source, &c.mu, listedSink[T]{Sink: sink, cache: c, kind: kind})
	}
}

// listedSink records that the first list of a kind is complete.
type listedSink[T any] struct {
	reducedwatch.Sink[T]
	cache *cache
	kind  string
}

// Replace implements reducedwatch.Sink.
func (l listedSink[T]) Replace(listed []T) {
	l.Sink.Replace(listed)
	l.cache.setListed(l.kind)
}

// unfinishedPods returns the field selector for the Pods that have not finished.
func unfinishedPods() string {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

func reduceNode(object runtime.Object) (*nodecapacity.Node, bool, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, false, nil
	}
	return nodecapacity.NewNode(node), true, nil
}

// reducedPod is the relevant part of a Pod.
type reducedPod struct {
	id nodepods.PodID
	// node is empty until the Pod is scheduled.
	node    string
	request nodecapacity.Request
	// namespace and unschedulable are set only for a Pod for which the scheduler finds no node.
	namespace     string
	unschedulable *nodecapacity.UnschedulablePod
}

func reducePod(object runtime.Object) (reducedPod, bool, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return reducedPod{}, false, nil
	}
	reduced := reducedPod{id: nodepods.IDOf(pod.UID), node: pod.Spec.NodeName}
	if reduced.node != "" {
		reduced.request = nodecapacity.RequestOf(pod)
	} else if reduced.unschedulable = nodecapacity.NewUnschedulablePod(pod); reduced.unschedulable != nil {
		reduced.namespace = pod.Namespace
	}
	return reduced, true, nil
}

// reducedReplicaSet is the relevant part of a ReplicaSet.
type reducedReplicaSet struct {
	nodecapacity.ReplicaSet
	// workload controls the ReplicaSet. It is empty if no workload does.
	workload workloadKey
}

func reduceReplicaSet(object runtime.Object) (reducedReplicaSet, bool, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return reducedReplicaSet{}, false, nil //nolint:nilerr // an object without metadata is the status of a failed watch
	}
	reduced := reducedReplicaSet{ReplicaSet: nodecapacity.NewReplicaSet(accessor)}
	if owner, _, ok := nodecapacity.ControllerOf(accessor); ok {
		reduced.workload = workloadKey{namespace: accessor.GetNamespace(), owner: owner}
	}
	return reduced, true, nil
}

// reducedQuota is the relevant part of a ResourceQuota.
type reducedQuota struct {
	namespace, name string
	quota           nodecapacity.Quota
}

func reduceQuota(object runtime.Object) (reducedQuota, bool, error) {
	quota, ok := object.(*corev1.ResourceQuota)
	if !ok {
		return reducedQuota{}, false, nil
	}
	return reducedQuota{namespace: quota.Namespace, name: quota.Name, quota: nodecapacity.NewQuota(quota)}, true, nil
}
