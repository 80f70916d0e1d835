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
func (w WindowCounter) Add(n int, now time.Time) WindowCounter {
	w = w.advanceTo(now)
	w.counts[w.slot%slotCount] += n
	return w
}

// Count returns the number of events in the window that ends now.
func (w WindowCounter) Count(now time.Time) int {
	w = w.advanceTo(now)
	sum := 0
	for _, count := range w.counts {
		sum += count
	}
	return sum
}

// advanceTo removes the slots that are older than the window at the given time.
func (w WindowCounter) advanceTo(now time.Time) WindowCounter {
	slot := max(now.UnixNano()/int64(Window/slotCount), w.slot, 0)
	for old := max(w.slot, slot-slotCount); old < slot; old++ {
		w.counts[(old+1)%slotCount] = 0
	}
	w.slot = slot
	return w
}
