package estimator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// watches returns the functions that keep the cache up to date until their context ends.
func (s *Server) watches() []func(context.Context) {
	core, replicaSets := s.options.Clients.Objects.CoreV1(),
		s.options.Clients.Metadata.Resource(appsv1.SchemeGroupVersion.WithResource(replicaSetKind))
	all := []func(context.Context){
		newWatch(s.cache, nodeKind, watches.NewSource(core.Nodes(), nodeKind, "", "", nil), reduceNode, nodeStore{s.cache}),
		newWatch(s.cache, podKind, watches.NewSource(core.Pods(""), podKind, "", unfinishedPods, nil), reducePod, podStore{s.cache}),
		newWatch(s.cache, replicaSetKind, watches.NewSource(replicaSets, replicaSetKind, "", "", nil), reduceReplicaSet,
			replicaSetStore{s.cache}),
	}
	if s.options.Quotas {
		all = append(all, newWatch(s.cache, quotaKind, watches.NewSource(core.ResourceQuotas(""), quotaKind, "", "", nil), reduceQuota,
			quotaStore{s.cache}))
	}
	return all
}

// unfinishedPods selects the Pods that have not finished.
const unfinishedPods = "status.phase!=Succeeded,status.phase!=Failed"

func newWatch[T any](c *cache, kind string, source *watches.Source, reduce func(runtime.Object) (T, error),
	store watches.ReducedStore[T]) func(context.Context) {
	loop := &watches.Loop{Open: watches.FixedSource(source), Sink: &watches.Reduced[T]{
		Reduce: reduce, Store: listedStore[T]{ReducedStore: store, cache: c, kind: kind}, Mutex: &c.mu,
	}}
	return loop.Run
}

// listedStore records that the first list of a kind is complete.
type listedStore[T any] struct {
	watches.ReducedStore[T]
	cache *cache
	kind  string
}

// Replace implements watches.ReducedStore.
func (l listedStore[T]) Replace(listed []T) {
	l.ReducedStore.Replace(listed)
	l.cache.setListed(l.kind)
}

func reduceNode(object runtime.Object) (*nodecapacity.Node, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("got %T instead of a node", object)
	}
	return nodecapacity.NewNode(node), nil
}

// reducedPod is the relevant part of a Pod.
type reducedPod struct {
	id nodecapacity.PodID
	// node is empty until the Pod is scheduled.
	node    string
	request nodecapacity.Request
	// namespace and unschedulable are set only for a Pod for which the scheduler finds no node.
	namespace     string
	unschedulable *nodecapacity.UnschedulablePod
}

func reducePod(object runtime.Object) (reducedPod, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return reducedPod{}, fmt.Errorf("got %T instead of a Pod", object)
	}
	reduced := reducedPod{id: nodecapacity.PodIDOf(pod.UID), node: pod.Spec.NodeName}
	if reduced.node != "" {
		reduced.request = nodecapacity.RequestOf(pod)
	} else if reduced.unschedulable = nodecapacity.NewUnschedulablePod(pod); reduced.unschedulable != nil {
		reduced.namespace = pod.Namespace
	}
	return reduced, nil
}

// reducedReplicaSet is the relevant part of a ReplicaSet.
type reducedReplicaSet struct {
	nodecapacity.ReplicaSet
	// workload controls the ReplicaSet. It is empty if no workload does.
	workload workloadKey
}

func reduceReplicaSet(object runtime.Object) (reducedReplicaSet, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return reducedReplicaSet{}, err
	}
	reduced := reducedReplicaSet{ReplicaSet: nodecapacity.NewReplicaSet(accessor)}
	if owner, _, ok := nodecapacity.ControllerOf(accessor); ok {
		reduced.workload = workloadKey{namespace: accessor.GetNamespace(), owner: owner}
	}
	return reduced, nil
}

// reducedQuota is the relevant part of a ResourceQuota.
type reducedQuota struct {
	namespace, name string
	quota           nodecapacity.Quota
}

func reduceQuota(object runtime.Object) (reducedQuota, error) {
	quota, ok := object.(*corev1.ResourceQuota)
	if !ok {
		return reducedQuota{}, fmt.Errorf("got %T instead of a ResourceQuota", object)
	}
	return reducedQuota{namespace: quota.Namespace, name: quota.Name, quota: nodecapacity.NewQuota(quota)}, nil
}
