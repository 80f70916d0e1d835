package guard

import "time"

// Window is for how long a deletion that was done counts as part of a burst.
const Window = 5 * time.Minute

// slots divide the window: a count is exact to a fifth of it.
const slots = 5

// Tally counts what happened within the last Window, in constant space. The zero
// value is empty. Time must not run backwards; what comes late counts as now.
type Tally struct {
	counts [slots]int
	// slot is the number of the youngest count since the epoch.
	slot int64
}

// Add counts n more that happened now.
func (t Tally) Add(n int, now time.Time) Tally {
	t = t.at(now)
	t.counts[t.slot%slots] += n
	return t
}

// Count is how many happened within the window that ends now.
func (t Tally) Count(now time.Time) int {
	t = t.at(now)
	sum := 0
	for _, count := range t.counts {
		sum += count
	}
	return sum
}

// at drops what is too old by then.
func (t Tally) at(now time.Time) Tally {
	slot := max(now.UnixNano()/int64(Window/slots), t.slot, 0)
	for old := max(t.slot, slot-slots); old < slot; old++ {
		t.counts[(old+1)%slots] = 0
	}
	t.slot = slot
	return t
}
