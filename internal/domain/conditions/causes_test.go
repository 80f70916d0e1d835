package conditions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEnumerate(t *testing.T) {
	long := strings.Repeat("x", 500)
	tests := map[string]struct {
		byCluster map[string]string
		want      string
	}{
		"no cluster adds nothing":                  {nil, "Failed: "},
		"clusters are sorted":                      {map[string]string{"m2": "b", "m1": "a"}, "Failed: m1: a; m2: b"},
		"a shared cause is listed once":            {map[string]string{"m3": "a", "m2": "b", "m1": "a"}, "Failed: m1, m3: a; m2: b"},
		"a cause of all clusters is not shortened": {map[string]string{"m1": long}, "Failed: m1: " + long},
		"one of several causes is shortened":       {map[string]string{"m1": long, "m2": "b"}, "Failed: m1: " + long[:197] + "...; m2: b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EnumerateCauses("Failed: ", tc.byCluster)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byCluster := map[string]string{}
		for i := range rapid.IntRange(0, 100).Draw(t, "clusters") {
			cause := rapid.StringN(0, 400, 2000).Draw(t, "cause")
			byCluster[fmt.Sprintf("member-%03d", i)] = cause
		}
		got := EnumerateCauses("Failed to apply: ", byCluster)
		if len(got) > MaxMessageBytes {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	})
}
