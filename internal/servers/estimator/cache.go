package estimator

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// awaitLogPeriod is the time between two messages about lists that are still missing.
const awaitLogPeriod = 10 * time.Second

// cache holds the values of the watched objects.
type cache struct {
	mu    sync.Mutex
	nodes *nodecapacity.Nodes
	// unschedulable are the unschedulable Pods by namespace. unschedulableIn are their namespaces.
	unschedulable   map[string]map[nodecapacity.PodID]*nodecapacity.UnschedulablePod
	unschedulableIn map[nodecapacity.PodID]string
	// replicaSets are the ReplicaSets by the workload that controls them. replicaSetOwners are the
	// workloads by the UID of the ReplicaSet.
	replicaSets      map[workloadKey]map[types.UID]nodecapacity.ReplicaSet
	replicaSetOwners map[types.UID]workloadKey
	// quotas are the quotas by namespace and name.
	quotas map[string]map[string]nodecapacity.Quota

	// missing are the kinds whose first list is missing. synced is closed when none is missing.
	missing map[string]struct{}
	synced  chan struct{}
}

// workloadKey identifies a workload in the member.
type workloadKey struct {
	namespace string
	owner     nodecapacity.Owner
}

// Names of the watched kinds in messages.
const (
	nodeKind       = "nodes"
	podKind        = "pods"
	replicaSetKind = "replicasets"
	quotaKind      = "resourcequotas"
)

func newCache(quotas bool) *cache {
	c := &cache{
		nodes:            nodecapacity.NewNodes(),
		unschedulable:    map[string]map[nodecapacity.PodID]*nodecapacity.UnschedulablePod{},
		unschedulableIn:  map[nodecapacity.PodID]string{},
		replicaSets:      map[workloadKey]map[types.UID]nodecapacity.ReplicaSet{},
		replicaSetOwners: map[types.UID]workloadKey{},
		quotas:           map[string]map[string]nodecapacity.Quota{},
		missing:          map[string]struct{}{nodeKind: {}, podKind: {}, replicaSetKind: {}},
		synced:           make(chan struct{}),
	}
	if quotas {
		c.missing[quotaKind] = struct{}{}
	}
	return c
}

// setListed records that the first list of a kind is complete. The caller holds the mutex.
func (c *cache) setListed(kind string) {
	if _, isMissing := c.missing[kind]; !isMissing {
		return
	}
	if delete(c.missing, kind); len(c.missing) == 0 {
		close(c.synced)
	}
}

// await waits until all kinds are listed. It returns false if ctx ends before.
func (c *cache) await(ctx context.Context) bool {
	ticker := time.NewTicker(awaitLogPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-c.synced:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			klog.FromContext(ctx).Info("Waiting for the first lists of the member", "missing", c.missingKinds())
		}
	}
}

func (c *cache) missingKinds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := make([]string, 0, len(c.missing))
	for kind := range c.missing {
		kinds = append(kinds, kind)
	}
	return kinds
}

// room returns the free amounts of these resources on all nodes.
func (c *cache) room(columns capacity.ResourceColumns) *nodecapacity.Room {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes.Room(columns)
}

// quotasOf returns the quotas of a namespace.
func (c *cache) quotasOf(namespace string) []nodecapacity.Quota {
	c.mu.Lock()
	defer c.mu.Unlock()
	quotas := make([]nodecapacity.Quota, 0, len(c.quotas[namespace]))
	for _, quota := range c.quotas[namespace] {
		quotas = append(quotas, quota)
	}
	return quotas
}

// newestReplicaSet returns the newest ReplicaSet that a workload controls, or nil.
func (c *cache) newestReplicaSet(workload workloadKey) *nodecapacity.ReplicaSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := make([]nodecapacity.ReplicaSet, 0, len(c.replicaSets[workload]))
	for _, set := range c.replicaSets[workload] {
		sets = append(sets, set)
	}
	return nodecapacity.Newest(sets)
}

// unschedulablePods returns the unschedulable Pods of a namespace.
func (c *cache) unschedulablePods(namespace string) []*nodecapacity.UnschedulablePod {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make([]*nodecapacity.UnschedulablePod, 0, len(c.unschedulable[namespace]))
	for _, pod := range c.unschedulable[namespace] {
		pods = append(pods, pod)
	}
	return pods
}

// setIn sets an entry of a map of maps.
func setIn[Outer, Inner comparable, Value any](entries map[Outer]map[Inner]Value, outer Outer, inner Inner, value Value) {
	if entries[outer] == nil {
		entries[outer] = map[Inner]Value{}
	}
	entries[outer][inner] = value
}

// deleteIn deletes an entry of a map of maps. It also deletes an inner map that becomes empty.
func deleteIn[Outer, Inner comparable, Value any](entries map[Outer]map[Inner]Value, outer Outer, inner Inner) {
	if delete(entries[outer], inner); len(entries[outer]) == 0 {
		delete(entries, outer)
	}
}
