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
	isKnown bool
	// replaced is the epoch of a storage that was replaced, nil once another one followed.
	replaced *domain.Epoch
}

// store notes what was seen.
func (m *Memory) store(now domain.Sight) { m.last, m.isKnown, m.replaced = now, true, nil }

// reset forgets a storage that was replaced. Unless the epoch that followed was seen, it
// is awaited.
func (m *Memory) reset(followed bool) {
	if before := m.last.Epoch; !followed {
		m.replaced = &before
	}
	m.last, m.isKnown = domain.Sight{}, false
}

// awaitsNewEpoch reports whether the storage was replaced, and the epoch that is stored now
// does not follow the one before.
func (m *Memory) awaitsNewEpoch(now domain.Epoch) bool {
	return m.replaced != nil && !now.Follows(*m.replaced)
}
