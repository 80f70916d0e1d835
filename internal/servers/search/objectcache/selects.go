package objectcache

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selects reports whether a registry selects a kind for a cluster, and the cluster may serve the kind.
// It is true for a kind that is not in a Snapshot only because the member did not say yet whether and
// how it serves the kind: nothing is known about its objects. It is false if the member says that it
// does not serve the kind. Before Evaluated, false means nothing.
func (c *Cache) Selects(cluster string, kind schema.GroupVersionKind) bool {
	c.evaluator.mu.RLock()
	known := c.evaluator.clusters[cluster]
	var source *sourceWatch
	if known != nil {
		source = known.sources[kind]
	}
	c.evaluator.mu.RUnlock()
	return source != nil && !source.isNotServed()
}

// isNotServed reports whether the last response of the member is that it does not serve the kind.
func (s *sourceWatch) isNotServed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer == nil && strings.HasSuffix(s.problem, errNotServed.Error())
}
