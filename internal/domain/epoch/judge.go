package epoch

import "strconv"

// Sight is what one look at the storage found.
type Sight struct {
	Epoch Epoch
	// Version is the resourceVersion of the storage at that moment, as a list tells
	// it.
	Version string
}

// Verdict is what a process concludes from two looks at the storage.
type Verdict int

// Verdicts.
const (
	// Same: it is the storage that the process knows, later in its life.
	Same Verdict = iota
	// Another: another epoch has begun.
	Another
	// Backwards: the ConfigMap is the same, and the storage is older than it was.
	Backwards
	// Ahead: the ConfigMap is the same, and the storage made a leap that writes cannot
	// make. A restore that raises revisions makes one.
	Ahead
)

// leap is a number of writes that no storage takes between two looks: at 10,000 a
// second they last 14 hours. What raises revisions in a restore adds 1,000,000,000.
const leap = 500_000_000

// Judge compares what a process saw last with what it sees now. Versions that are no
// numbers say nothing.
func Judge(before, now Sight) Verdict {
	if before.Epoch.ID != now.Epoch.ID && !first(before.Epoch, now.Epoch) {
		return Another
	}
	older, err := strconv.ParseUint(before.Version, 10, 64)
	if err != nil {
		return Same
	}
	newer, err := strconv.ParseUint(now.Version, 10, 64)
	switch {
	case err != nil:
		return Same
	case newer < older:
		return Backwards
	case newer-older >= leap:
		return Ahead
	default:
		return Same
	}
}

// first reports whether a storage without the ConfigMap got its first one, as one
// does that an earlier version installed.
func first(before, now Epoch) bool { return before.ID == "" && now.Cause == Installed }
