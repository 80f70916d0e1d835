package cluster

import (
	"slices"
	"strings"
)

// ownerSeparator separates the control planes' IDs in an annotation of member objects.
const ownerSeparator = ","

// Owners returns the sorted IDs of the control planes in the annotation. It ignores texts that are not
// IDs, because the member may change the annotation, and messages contain the IDs.
func Owners(annotation string) []string {
	owners := slices.DeleteFunc(strings.Split(annotation, ownerSeparator), func(id string) bool { return !IsValidID(id) })
	slices.Sort(owners)
	return slices.Compact(owners)
}

// OtherOwner returns the ID of a control plane in the annotation other than the given ID, or an empty
// string if there is none. If the given ID is empty, every control plane counts as another one.
func OtherOwner(annotation, id string) string {
	for _, owner := range Owners(annotation) {
		if owner != id {
			return owner
		}
	}
	return ""
}

// AddOwner returns the annotation with the ID added. An empty ID adds nothing.
func AddOwner(annotation, id string) string {
	return strings.Join(Owners(annotation+ownerSeparator+id), ownerSeparator)
}

// RemoveOwner returns the annotation without the given ID. It is empty if no control plane remains.
func RemoveOwner(annotation, id string) string {
	others := slices.DeleteFunc(Owners(annotation), func(owner string) bool { return owner == id })
	return strings.Join(others, ownerSeparator)
}
