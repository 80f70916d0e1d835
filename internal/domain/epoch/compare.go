package epoch

import "strconv"

// Snapshot is the observed state of the storage.
type Snapshot struct {
	Epoch Epoch
	// ResourceVersion is the resourceVersion that a list of the storage returned.
	ResourceVersion string
}

// Comparison is the result of the comparison of two observed states.
type Comparison int

// Values of Verdict.
const (
	// SameStorage means that it is the same storage, at a later time.
	SameStorage Comparison = iota
	// AnotherEpoch means that another epoch began.
	AnotherEpoch
	// VersionDecreased means that the ConfigMap is the same, and the resourceVersion decreased.
	VersionDecreased
	// VersionJumped means that the ConfigMap is the same, and the resourceVersion increased by more than
	// writes can cause. A restore that raises revisions does that.
	VersionJumped
)

// minJump is a number of writes that no storage handles between two checks: at 10,000 writes a
// second they take 14 hours. A restore that raises revisions adds 1,000,000,000.
const minJump = 500_000_000

// CompareSnapshots compares the last observed state with the present one. A version that is not a number is
// ignored.
func CompareSnapshots(before, now Snapshot) Comparison {
	if before.Epoch.ID != now.Epoch.ID && !isFirstEpoch(before.Epoch, now.Epoch) {
		return AnotherEpoch
	}
	older, err := strconv.ParseUint(before.ResourceVersion, 10, 64)
	if err != nil {
		return SameStorage
	}
	newer, err := strconv.ParseUint(now.ResourceVersion, 10, 64)
	switch {
	case err != nil:
		return SameStorage
	case newer < older:
		return VersionDecreased
	case newer-older >= minJump:
		return VersionJumped
	default:
		return SameStorage
	}
}

// isFirstEpoch reports whether a storage without the ConfigMap got its first one. That happens
// with a storage that an earlier version installed.
func isFirstEpoch(before, now Epoch) bool { return before.ID == "" && now.Cause == CauseInstalled }
