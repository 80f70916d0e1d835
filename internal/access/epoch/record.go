package epoch

import (
	"sync"

	domain "karmada.io/karmada/internal/domain/epoch"
)

// StorageRecord is what a process knows about the storage. It is kept while the components of the
// process start again, because without it a storage that lost its epoch would look like a storage
// at the first start.
type StorageRecord struct {
	mu sync.Mutex
	// last is the result of the last read. isKnown is false as long as there is no such read since
	// the process started or since the storage was replaced.
	last    domain.Snapshot
	isKnown bool
	// replaced is the epoch of a storage that was replaced. It is nil after the new epoch was read.
	replaced *domain.Epoch
}

// store stores the result of a read.
func (m *StorageRecord) store(now domain.Snapshot) { m.last, m.isKnown, m.replaced = now, true, nil }

// reset forgets a storage that was replaced. followed is true if the new epoch was already read or
// no new epoch is expected. If it is false, the StorageRecord waits for the new epoch.
func (m *StorageRecord) reset(followed bool) {
	if before := m.last.Epoch; !followed {
		m.replaced = &before
	}
	m.last, m.isKnown = domain.Snapshot{}, false
}

// awaitsNewEpoch reports whether the storage was replaced and the stored epoch is not newer than
// the replaced one.
func (m *StorageRecord) awaitsNewEpoch(now domain.Epoch) bool {
	return m.replaced != nil && !now.Follows(*m.replaced)
}
