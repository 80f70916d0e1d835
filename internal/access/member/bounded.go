package member

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/access/member/bounds"
)

// bound has the bounds of a member follow what was delivered to it, and counts what
// exceeds them. It must be called before anything is watched.
func (m *Member) bound(o Options) {
	m.bounds.Hits.SetCounter(o.Metrics.bounded)
	if o.Delivered != nil {
		m.bounds.Delivered = func() bounds.Delivered { return o.Delivered(m.Name) }
	}
}

// newInformer makes an informer that takes no more from the member than it may.
func (m *Member) newInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	kind := example.GetObjectKind().GroupVersionKind()
	bounded := permitting{toolscache.ToListerWatcherWithContext(m.bounds.BoundedListerWatcher(from, kind)), func() { m.permit(kind) }}
	return toolscache.NewSharedIndexInformer(bounded, example, resync, indexers)
}

// Exceeded returns the bounds that the member hit lately.
func (m *Member) Exceeded() []bounds.ExceededError { return m.bounds.Hits.Recent() }

// exceeds returns an error if an amount is beyond its bound.
func (m *Member) exceeds(bound bounds.Bound, subject, unit string, amount, limit int) error {
	if amount <= limit {
		return nil
	}
	err := m.bounds.Hits.Record(bounds.ExceededError{Bound: bound, Subject: subject, Limit: int64(limit), Measured: int64(limit) + 1, Unit: unit})
	return fmt.Errorf("reading %s: %w", subject, err)
}
