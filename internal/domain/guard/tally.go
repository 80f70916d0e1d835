package guard

import "time"

// Window is how long a deletion counts as part of a burst.
const Window = 5 * time.Minute

// slotCount is the number of slots into which the window is divided. A count is exact to one fifth
// of the window.
const slotCount = 5

// WindowCounter counts events within the last Window in constant memory. The zero value has no
// events. A time that is earlier than the latest time is treated as the latest time.
type WindowCounter struct {
	counts [slotCount]int
	// slot is the number of the latest slot, counted from the Unix epoch.
	slot int64
}

// Add counts n events at the time now.
func (t WindowCounter) Add(n int, now time.Time) WindowCounter {
	t = t.advanceTo(now)
	t.counts[t.slot%slotCount] += n
	return t
}

// Count returns the number of events in the window that ends now.
func (t WindowCounter) Count(now time.Time) int {
	t = t.advanceTo(now)
	sum := 0
	for _, count := range t.counts {
		sum += count
	}
	return sum
}

// advanceTo removes the slots that are older than the window at the given time.
func (t WindowCounter) advanceTo(now time.Time) WindowCounter {
	slot := max(now.UnixNano()/int64(Window/slotCount), t.slot, 0)
	for old := max(t.slot, slot-slotCount); old < slot; old++ {
		t.counts[(old+1)%slotCount] = 0
	}
	t.slot = slot
	return t
}
