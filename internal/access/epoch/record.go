package epoch

import (
	"sync"

	domain "karmada.io/karmada/internal/domain/epoch"
)

// Memory is what a process knows of the storage while its components start again, because the
// storage was replaced or for another reason. Without it, a storage that lost its epoch would
// look like that of a first start.
type Memory struct {
	mu sync.Mutex
	// last is the last read of the known storage.
	last    domain.Sight
	isKnown bool
	// replaced is the epoch of a storage that was replaced, nil after a new epoch was read.
	replaced *domain.Epoch
}

// store records a read.
func (m *Memory) store(now domain.Sight) { m.last, m.isKnown, m.replaced = now, true, nil }

// reset drops a storage that was replaced. If the new epoch was not read yet, the Memory waits
// for it.
func (m *Memory) reset(followed bool) {
	if before := m.last.Epoch; !followed {
		m.replaced = &before
	}
	m.last, m.isKnown = domain.Sight{}, false
}

// awaitsNewEpoch reports whether the storage was replaced and the stored epoch is not newer
// than the old one.
func (m *Memory) awaitsNewEpoch(now domain.Epoch) bool {
	return m.replaced != nil && !now.Follows(*m.replaced)
}
