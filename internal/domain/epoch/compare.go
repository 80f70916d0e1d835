package epoch

import "strconv"

// Snapshot is the state of the storage at one observation.
type Snapshot struct {
	Epoch Epoch
	// ResourceVersion is the resourceVersion that a list of the storage returned.
	ResourceVersion string
}

// Comparison is the result of the comparison of two observed states.
type Comparison int

// Values of Comparison.
const (
	// SameStorage means that both states are of the same storage, and the second one is not older.
	SameStorage Comparison = iota
	// AnotherEpoch means that another epoch began.
	AnotherEpoch
	// VersionDecreased means that the ConfigMap of the epoch is the same, but the resourceVersion
	// decreased.
	VersionDecreased
	// VersionJumped means that the ConfigMap of the epoch is the same, but the resourceVersion
	// increased by more than writes can cause. A restore that raises revisions causes such an
	// increase.
	VersionJumped
)

// minJump is a number of writes that no storage handles between two checks: at 10,000 writes a
// second these writes take 14 hours. A restore that raises revisions adds 1,000,000,000.
const minJump = 500_000_000

// CompareSnapshots compares the previously observed state of the storage with the current state. A
// resourceVersion that is not a number is ignored.
func CompareSnapshots(before, now Snapshot) Comparison {
	if before.Epoch.ID != now.Epoch.ID && (before.Epoch.ID != "" || now.Epoch.Cause != CauseInstalled) {
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
