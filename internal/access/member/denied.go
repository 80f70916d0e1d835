package member

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// denialAge is how long the denial of a watch counts. A watch is tried again more often.
const denialAge = 2 * time.Minute

// deny notes that the member does not let a kind be watched. It reports whether that
// is known already, so that it need not be logged again.
func (m *Member) deny(description string, err error) (known bool) {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	for kind, watch := range m.kinds.watched {
		if kind.String() == description {
			known = watch.denial != nil && watch.denial.Error() == err.Error()
			watch.denial, watch.deniedAt = err, time.Now()
		}
	}
	return known
}

// Denial returns why the member does not let a kind be watched, nil if it does or if
// that is not known. The status of objects of such a kind is not seen, and neither are
// changes by others.
func (m *Member) Denial(kind schema.GroupVersionKind) error {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	watch := m.kinds.watched[kind]
	if watch == nil || time.Since(watch.deniedAt) > denialAge {
		return nil
	}
	return watch.denial
}
