package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSimilarNames(t *testing.T) {
	names := []string{"annotate", "api-resources", "api-versions", "apply", "cordon", "describe", "edit", "exec", "explain", "get", "join", "label", "logs", "register", "taint", "token", "top", "uncordon", "unjoin", "unregister"}
	tests := map[string]struct {
		typed string
		want  []string
	}{
		"two swapped neighbors":                        {"jion", []string{"join"}},
		"one character too many":                       {"gett", []string{"get"}},
		"one character is missing":                     {"anotate", []string{"annotate"}},
		"two differences in a long word":               {"unregistar2", []string{"unregister"}},
		"upper case":                                   {"JOIN", []string{"join"}},
		"the prefix of one name":                       {"desc", []string{"describe"}},
		"the prefix of two names":                      {"api", []string{"api-resources", "api-versions"}},
		"half of a short word differs":                 {"init", nil},
		"two characters of another word":               {"up", nil},
		"a single character":                           {"a", nil},
		"an unrelated word":                            {"frobnicate", nil},
		"names are sorted by distance":                 {"unjon", []string{"unjoin"}},
		"names with equal distance are sorted by name": {"tox", []string{"top"}},
		"an empty word":                                {"", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := similarNames(test.typed, names)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("similar names (-want +got):\n%s", diff)
			}
		})
	}
}
