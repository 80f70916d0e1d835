package programs

import (
	"fmt"
	"slices"
	"strings"
)

// IsSelected reports whether the list of a flag enables name. "*" enables everything that is
// enabled by default, "name" enables name, and "-name" disables name. The first entry for a name
// takes precedence over later entries and over "*".
func IsSelected(list []string, name string, byDefault bool) bool {
	for _, entry := range list {
		if entry == name {
			return true
		}
		if entry == "-"+name {
			return false
		}
	}
	return byDefault && slices.Contains(list, "*")
}

// ValidateSelection returns an error that names every unknown entry of the list.
func ValidateSelection(flag, what string, list, known []string) error {
	var unknown []string
	for _, entry := range list {
		if entry != "*" && !slices.Contains(known, strings.TrimPrefix(entry, "-")) {
			unknown = append(unknown, fmt.Sprintf("%q", entry))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("--%s: there is no %s %s; known are %s", flag, what, strings.Join(unknown, ", "), strings.Join(known, ", "))
}
