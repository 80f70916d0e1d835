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
func (s *StorageRecord) store(now domain.Snapshot) { s.last, s.isKnown, s.replaced = now, true, nil }

// reset forgets a storage that was replaced. followed is true if the new epoch was already read or
// no new epoch is expected. If it is false, the StorageRecord waits for the new epoch.
func (s *StorageRecord) reset(followed bool) {
	if before := s.last.Epoch; !followed {
		s.replaced = &before
	}
	s.last, s.isKnown = domain.Snapshot{}, false
}

// awaitsNewEpoch reports whether the storage was replaced and the stored epoch is not newer than
// the replaced one.
func (s *StorageRecord) awaitsNewEpoch(now domain.Epoch) bool {
	return s.replaced != nil && !now.Follows(*s.replaced)
}
