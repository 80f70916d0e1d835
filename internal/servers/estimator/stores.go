package estimator

import (
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/nodecapacity"
)

// The types of this file implement reducedwatch.Sink. The mutex of the cache is held while their
// methods run.

type nodeStore struct{ *cache }

// Set stores a node.
func (n nodeStore) Set(node *nodecapacity.Node) { n.nodes.SetNode(node) }

// Remove removes a deleted node.
func (n nodeStore) Remove(node *nodecapacity.Node) { n.nodes.RemoveNode(node.Name()) }

// Replace stores all nodes of a list.
func (n nodeStore) Replace(nodes []*nodecapacity.Node) {
	listed := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		n.Set(node)
		listed[node.Name()] = true
	}
	n.nodes.PruneNodes(func(name string) bool { return listed[name] })
}

type podStore struct{ *cache }

// Set stores a Pod that has not finished.
func (p podStore) Set(pod reducedPod) {
	if pod.node == "" {
		p.nodes.RemovePod(pod.id)
	} else {
		p.nodes.SetPod(pod.id, pod.node, pod.request)
	}
	p.setUnschedulable(pod)
}

func (p podStore) setUnschedulable(pod reducedPod) {
	namespace, isHeld := p.unschedulableIn[pod.id]
	switch {
	case pod.unschedulable != nil:
		setIn(p.unschedulable, pod.namespace, pod.id, pod.unschedulable)
		p.unschedulableIn[pod.id] = pod.namespace
	case isHeld:
		deleteIn(p.unschedulable, namespace, pod.id)
		delete(p.unschedulableIn, pod.id)
	}
}

// Remove removes a Pod that is deleted or has finished.
func (p podStore) Remove(pod reducedPod) {
	p.nodes.RemovePod(pod.id)
	p.setUnschedulable(reducedPod{id: pod.id})
}

// Replace stores all Pods of a list.
func (p podStore) Replace(pods []reducedPod) {
	listed := make(map[nodecapacity.PodID]bool, len(pods))
	for _, pod := range pods {
		p.Set(pod)
		listed[pod.id] = true
	}
	p.nodes.PrunePods(func(id nodecapacity.PodID) bool { return listed[id] })
	for id := range p.unschedulableIn {
		if !listed[id] {
			p.setUnschedulable(reducedPod{id: id})
		}
	}
}

type replicaSetStore struct{ *cache }

// Set stores a ReplicaSet that a workload controls.
func (r replicaSetStore) Set(set reducedReplicaSet) {
	if owner, ok := r.replicaSetOwners[set.UID]; ok && owner != set.workload {
		r.Remove(set)
	}
	if set.workload == (workloadKey{}) {
		return
	}
	r.replicaSetOwners[set.UID] = set.workload
	setIn(r.replicaSets, set.workload, set.UID, set.ReplicaSet)
}

// Remove removes a deleted ReplicaSet.
func (r replicaSetStore) Remove(set reducedReplicaSet) {
	if owner, ok := r.replicaSetOwners[set.UID]; ok {
		delete(r.replicaSetOwners, set.UID)
		deleteIn(r.replicaSets, owner, set.UID)
	}
}

// Replace stores all ReplicaSets of a list.
func (r replicaSetStore) Replace(sets []reducedReplicaSet) {
	listed := make(map[types.UID]bool, len(sets))
	for _, set := range sets {
		r.Set(set)
		listed[set.UID] = true
	}
	for uid := range r.replicaSetOwners {
		if !listed[uid] {
			r.Remove(reducedReplicaSet{ReplicaSet: nodecapacity.ReplicaSet{UID: uid}})
		}
	}
}

type quotaStore struct{ *cache }

// Set stores a quota.
func (q quotaStore) Set(quota reducedQuota) {
	setIn(q.quotas, quota.namespace, quota.name, quota.quota)
}

// Remove removes a deleted quota.
func (q quotaStore) Remove(quota reducedQuota) { deleteIn(q.quotas, quota.namespace, quota.name) }

// Replace stores all quotas of a list.
func (q quotaStore) Replace(quotas []reducedQuota) {
	clear(q.quotas)
	for _, quota := range quotas {
		q.Set(quota)
	}
}
