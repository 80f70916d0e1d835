package member

import (
	"fmt"

	"karmada.io/karmada/internal/access/member/bounds"
)

// configureBounds sets the source of the delivered size and the metrics for the limits of a member.
// It must be called before the first watch.
func (m *Member) configureBounds(o Options) {
	m.bounds.Hits.SetCounter(o.Metrics.countExceededBound)
	if o.Delivered != nil {
		m.bounds.Delivered = func() bounds.DeliveredSize { return o.Delivered(m.Name) }
	}
}

// Bounds returns the limits for the data that the member sends.
func (m *Member) Bounds() *bounds.MemberBounds { return m.bounds }

// ExceededBounds returns the limits that the member exceeded recently.
func (m *Member) ExceededBounds() []bounds.ExceededError { return m.bounds.Hits.Recent() }

// limitAmount returns an error if an amount exceeds its limit.
func (m *Member) limitAmount(bound bounds.Bound, subject, unit string, amount, limit int) error {
	if amount <= limit {
		return nil
	}
	err := m.bounds.Hits.Record(bounds.ExceededError{Bound: bound, Subject: subject, Limit: int64(limit), Measured: int64(limit) + 1,
		Unit: unit})
	return fmt.Errorf("reading %s: %w", subject, err)
}
