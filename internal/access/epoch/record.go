package epoch

import (
	"sync"

	domain "karmada.io/karmada/internal/domain/epoch"
)

// StorageRecord is what a process knows of the storage while its components start again, because the
// storage was replaced or for another reason. Without it, a storage that lost its epoch would
// look like that of a first start.
type StorageRecord struct {
	mu sync.Mutex
	// last is the last read of the known storage.
	last    domain.Snapshot
	isKnown bool
	// replaced is the epoch of a storage that was replaced, nil after a new epoch was read.
	replaced *domain.Epoch
}

// store records a read.
func (m *StorageRecord) store(now domain.Snapshot) { m.last, m.isKnown, m.replaced = now, true, nil }

// reset drops a storage that was replaced. If the new epoch was not read yet, the Memory waits
// for it.
func (m *StorageRecord) reset(followed bool) {
	if before := m.last.Epoch; !followed {
		m.replaced = &before
	}
	m.last, m.isKnown = domain.Snapshot{}, false
}

// awaitsNewEpoch reports whether the storage was replaced and the stored epoch is not newer
// than the old one.
func (m *StorageRecord) awaitsNewEpoch(now domain.Epoch) bool {
	return m.replaced != nil && !now.Follows(*m.replaced)
}
