package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMistypedNamesHaveNearOnes(t *testing.T) {
	names := []string{"annotate", "api-resources", "api-versions", "apply", "cordon", "describe", "edit", "exec", "explain", "get", "join", "label", "logs", "register", "taint", "token", "top", "uncordon", "unjoin", "unregister"}
	tests := map[string]struct {
		typed string
		want  []string
	}{
		"two neighbours in the wrong order":     {"jion", []string{"join"}},
		"one character too many":                {"gett", []string{"get"}},
		"one character is missing":              {"anotate", []string{"annotate"}},
		"two differences in a long word":        {"unregistar2", []string{"unregister"}},
		"upper case":                            {"JOIN", []string{"join"}},
		"the begin of one name":                 {"desc", []string{"describe"}},
		"the begin of two names":                {"api", []string{"api-resources", "api-versions"}},
		"half of a short word is another word":  {"init", nil},
		"two of three characters":               {"up", nil},
		"one character means nothing":           {"a", nil},
		"a word of another kind":                {"frobnicate", nil},
		"the nearer name comes first":           {"unjon", []string{"unjoin"}},
		"an equal distance is sorted by letter": {"tox", []string{"top"}},
		"nothing at all":                        {"", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := nearest(test.typed, names)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("near names (-want +got):\n%s", diff)
			}
		})
	}
}
