package objectcache

import (
	"cmp"
	"math"
	"strconv"
)

// unknownVersion is the number of a resourceVersion that is empty.
const unknownVersion = 0

// parseVersion returns the number of a resourceVersion. It returns false if the text cannot be
// restored from the number.
func parseVersion(text string) (uint64, bool) {
	if text == "" {
		return unknownVersion, true
	}
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && number != unknownVersion && number != math.MaxUint64 && text[0] != '0'
}

func formatVersion(number uint64) string {
	if number == unknownVersion {
		return ""
	}
	return strconv.FormatUint(number, 10)
}

// compareVersions compares two resourceVersions of one cluster as numbers. It returns false if they
// differ and one of them is no number: then their order is unknown.
func compareVersions(a, b string) (int, bool) {
	if a == b {
		return 0, true
	}
	x, okX := parseVersion(a)
	y, okY := parseVersion(b)
	return cmp.Compare(x, y), okX && okY
}

// IsOlder reports whether a resourceVersion a of a cluster is known to be lower than b.
func IsOlder(a, b string) bool {
	order, ok := compareVersions(a, b)
	return ok && order < 0
}

// versionBefore returns the largest resourceVersion below a version, or the version if it is no
// number.
func versionBefore(version string) string {
	if number, ok := parseVersion(version); ok && number > 1 {
		return formatVersion(number - 1)
	}
	return version
}
