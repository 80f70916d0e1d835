package objectcache

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// syncRound is the time between two reports while WaitForSync waits.
const syncRound = 100 * time.Millisecond

// NotServed is the state of a kind that a registry selects, and that is not cached for a cluster: the
// cluster does not serve the kind, or serves it as another resource than other clusters, or the selector is
// invalid. Sources in a Snapshot never have it.
const NotServed State = "NotServed"

// SourceReport is what a registry selects in one cluster, and what became of it.
type SourceReport struct {
	Cluster    string
	APIVersion string
	Kind       string
	// Registries are the names of the registries that select the kind, sorted.
	Registries []string
	State      State
	// Since is the time at which the state began. It is zero for NotServed.
	Since time.Time
	// Objects is the number of cached objects, Bytes their memory.
	Objects int
	Bytes   int64
	// Message is what is wrong. It is empty if nothing is.
	Message string
}

// Report returns what the registries select, sorted by cluster, group, version and kind.
func (c *Cache) Report() []SourceReport {
	e := c.evaluator
	e.mu.RLock()
	defer e.mu.RUnlock()
	var all []SourceReport
	for _, cluster := range e.clusters {
		for _, source := range cluster.sources {
			all = append(all, source.reportState())
		}
		for _, skipped := range cluster.selection.Skipped {
			all = append(all, SourceReport{
				Cluster: cluster.cluster.Name, APIVersion: skipped.APIVersion, Kind: skipped.Kind,
				Registries: []string{skipped.Registry}, State: NotServed, Message: skipped.Reason,
			})
		}
	}
	slices.SortFunc(all, func(a, b SourceReport) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			slices.Compare(a.Registries, b.Registries))
	})
	return all
}

func (s *sourceWatch) reportState() SourceReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	report := SourceReport{
		Cluster: s.cluster.Name, APIVersion: s.kind.GroupVersion().String(), Kind: s.kind.Kind, Registries: s.registries,
		State: Waiting, Since: s.problemSince, Message: s.problem,
	}
	if s.writer == nil {
		if s.isSkipped {
			report.State, report.Since = NotServed, time.Time{}
		}
		return report
	}
	s.writer.kind.mu.Lock()
	defer s.writer.kind.mu.Unlock()
	current := &s.writer.source.current
	report.State, report.Since, report.Message = current.state, current.since, current.reason
	report.Objects, report.Bytes = current.objects.Len(), current.bytes
	return report
}

// RegistryNames returns the names of all registries that are evaluated.
func (c *Cache) RegistryNames() []string {
	c.evaluator.mu.RLock()
	defer c.evaluator.mu.RUnlock()
	names := make([]string, 0, len(c.evaluator.registries))
	for name := range c.evaluator.registries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// OpenSearch returns the OpenSearch back end of a cluster, or nil if the registries of the cluster ask
// for none. StatesChanged announces changes. The caller must not modify the result.
func (c *Cache) OpenSearch(cluster string) *searchv1alpha1.OpenSearchConfig {
	c.evaluator.mu.RLock()
	defer c.evaluator.mu.RUnlock()
	if known := c.evaluator.clusters[cluster]; known != nil {
		return known.selection.OpenSearch
	}
	return nil
}

// WaitForSync waits until the registries and clusters were evaluated, and each source of a cluster that
// is ready was listed or failed. It waits no longer than limit. It returns the sources that are still
// missing: a server may begin to serve without them. It returns nil if the evaluation did not end in time.
func (c *Cache) WaitForSync(ctx context.Context, limit time.Duration) []SourceReport {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-c.Evaluated():
	case <-ctx.Done():
		return nil
	}
	for {
		changed := c.StatesChanged()
		missing := slices.DeleteFunc(c.Report(), func(s SourceReport) bool { return s.State != Waiting || s.Message != "" })
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
			// The whole report is expensive, and many states change at the start.
			waitFor(ctx, syncRound)
		case <-ctx.Done():
			return missing
		}
	}
}
