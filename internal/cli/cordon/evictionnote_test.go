package cordon

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDescribeEvictionReport(t *testing.T) {
	tests := map[string]struct {
		reported *metav1.Condition
		want     string
	}{
		"evictions are on":  {&metav1.Condition{Status: metav1.ConditionTrue, Message: "on"}, ""},
		"evictions are off": {&metav1.Condition{Status: metav1.ConditionFalse, Message: "off: set a flag"}, "off: set a flag"},
		"no report":         {nil, "has not reported whether NoExecute taints evict workloads: see the condition TaintsEvict in kubectl describe cluster east"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := describeEvictionReport("east", test.reported)
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
