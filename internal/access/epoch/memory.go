package epoch

import (
	"sync"

	domain "karmada.io/karmada/internal/domain/epoch"
)

// Memory is what a process knows of the storage while its components begin anew, because
// the storage was replaced or for another reason. Otherwise a storage that lost its epoch
// would look like that of a first start.
type Memory struct {
	mu sync.Mutex
	// last is what was seen last of the storage that is known.
	last  domain.Sight
	known bool
	// replaced is the epoch of a storage that was replaced, nil once another one followed.
	replaced *domain.Epoch
}

// note notes what was seen.
func (m *Memory) note(now domain.Sight) { m.last, m.known, m.replaced = now, true, nil }

// forget forgets a storage that was replaced. Unless the epoch that followed was seen, it
// is awaited.
func (m *Memory) forget(followed bool) {
	if before := m.last.Epoch; !followed {
		m.replaced = &before
	}
	m.last, m.known = domain.Sight{}, false
}

// awaitsAfter reports whether the storage was replaced, and the epoch that is stored now
// does not follow the one before.
func (m *Memory) awaitsAfter(now domain.Epoch) bool {
	return m.replaced != nil && !now.Follows(*m.replaced)
}
