package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBoundsCondition(t *testing.T) {
	exceeded := &metav1.Condition{Type: "WithinBounds", Status: metav1.ConditionFalse, Reason: "BoundExceeded"}
	for name, tc := range map[string]struct {
		stored   *metav1.Condition
		exceeded []string
		want     string
	}{
		"never exceeded a bound": {nil, nil, ""},
		"an exceeded bound is named": {nil, []string{"pods: 4 bytes"},
			"False BoundExceeded what the cluster sent was not used: pods: 4 bytes"},
		"of many bounds the first are named and the others counted": {nil, []string{"a", "b", "c", "d", "e", "f", "g"},
			"False BoundExceeded what the cluster sent was not used: a; b; c; d; e; and 2 more"},
		"within the bounds again": {exceeded, nil,
			"True BoundsKept the cluster is within all bounds again"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := WithinBoundsCondition(tc.stored, tc.exceeded, 1, metav1.Time{}); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("BoundsCondition (-want +got):\n%s", diff)
			}
		})
	}
}
