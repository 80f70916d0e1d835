package conditions

import (
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasonPattern matches valid reasons. The API server rejects all other reasons.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func TestTableRows(t *testing.T) {
	type key struct{ kind, conditionType, status, reason string }
	seen := map[key]bool{}
	for _, row := range Table() {
		if row.Type == "" || row.When == "" || len(row.Kinds) == 0 || !reasonPattern.MatchString(row.Reason) {
			t.Errorf("incomplete row %+v", row)
		}
		for _, kind := range row.Kinds {
			k := key{kind, row.Type, string(row.Status), row.Reason}
			if seen[k] {
				t.Errorf("%+v exists twice", k)
			}
			seen[k] = true
		}
	}
}

func TestKnown(t *testing.T) {
	tests := map[string]struct {
		kind      string
		condition metav1.Condition
		want      bool
	}{
		"a row":               {"Work", metav1.Condition{Type: "Applied", Status: "True", Reason: "AppliedSuccessful"}, true},
		"a row of both kinds": {"ClusterResourceBinding", metav1.Condition{Type: "Scheduled", Status: "False", Reason: "NoClusterFit"}, true},
		"the wrong kind":      {"Cluster", metav1.Condition{Type: "Applied", Status: "True", Reason: "AppliedSuccessful"}, false},
		"the wrong status":    {"Work", metav1.Condition{Type: "Applied", Status: "False", Reason: "AppliedSuccessful"}, false},
		"an invented reason":  {"Work", metav1.Condition{Type: "Applied", Status: "True", Reason: "Fine"}, false},
		"a reserved type":     {"Work", metav1.Condition{Type: "Progressing", Status: "True", Reason: "x"}, false},
		"a row of Cluster":    {"Cluster", metav1.Condition{Type: "CompleteAPIEnablements", Status: "False", Reason: "Partial"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsKnown(test.kind, test.condition); got != test.want {
				t.Errorf("Known = %v, want %v", got, test.want)
			}
		})
	}
}
