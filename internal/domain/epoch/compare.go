package epoch

import "strconv"

// Sight is the observed state of the storage.
type Sight struct {
	Epoch Epoch
	// Version is the resourceVersion that a list of the storage returned.
	Version string
}

// Verdict is the result of the comparison of two observed states.
type Verdict int

// Values of Verdict.
const (
	// Same means that it is the same storage, at a later time.
	Same Verdict = iota
	// Another means that another epoch began.
	Another
	// Backwards means that the ConfigMap is the same, and the resourceVersion decreased.
	Backwards
	// Ahead means that the ConfigMap is the same, and the resourceVersion increased by more than
	// writes can cause. A restore that raises revisions does that.
	Ahead
)

// minJump is a number of writes that no storage handles between two checks: at 10,000 writes a
// second they take 14 hours. A restore that raises revisions adds 1,000,000,000.
const minJump = 500_000_000

// Judge compares the last observed state with the present one. A version that is not a number is
// ignored.
func Judge(before, now Sight) Verdict {
	if before.Epoch.ID != now.Epoch.ID && !isFirstEpoch(before.Epoch, now.Epoch) {
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
	case newer-older >= minJump:
		return Ahead
	default:
		return Same
	}
}

// isFirstEpoch reports whether a storage without the ConfigMap got its first one. That happens
// with a storage that an earlier version installed.
func isFirstEpoch(before, now Epoch) bool { return before.ID == "" && now.Cause == Installed }
