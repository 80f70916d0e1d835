package work

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestParseProgressStable(t *testing.T) {
	tests := map[string]struct {
		status string
		want   bool
	}{
		"no status":                                     {status: "", want: true},
		"a status without counts":                       {status: `{"phase":"Bound"}`, want: true},
		"a status with other types":                     {status: `{"replicas":"many"}`, want: true},
		"all replicas are updated and ready":            {status: `{"generation":2,"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3}`, want: true},
		"scaled to nothing":                             {status: `{"generation":2,"observedGeneration":2}`, want: true},
		"a ReplicaSet, which has no updated replicas":   {status: `{"replicas":3,"readyReplicas":3}`, want: true},
		"an old replica remains":                        {status: `{"replicas":2,"updatedReplicas":1,"readyReplicas":2}`, want: false},
		"a new replica is not ready":                    {status: `{"replicas":3,"updatedReplicas":3,"readyReplicas":2}`, want: false},
		"a replica is not available":                    {status: `{"replicas":3,"updatedReplicas":3,"readyReplicas":3,"unavailableReplicas":1}`, want: false},
		"a Pod of a DaemonSet is not available":         {status: `{"numberUnavailable":1}`, want: false},
		"the controller has not seen the newest object": {status: `{"generation":3,"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1}`, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ParseProgress(&runtime.RawExtension{Raw: []byte(test.status)}).IsStable; got != test.want {
				t.Errorf("ProgressOf(%s).Settled = %t, want %t", test.status, got, test.want)
			}
		})
	}
	if !ParseProgress(nil).IsStable {
		t.Error("ProgressOf(nil).Settled = false, want true")
	}
}

func TestParseProgressTemplateGeneration(t *testing.T) {
	for status, want := range map[string]int64{"": 0, `{}`: 0, `{"resourceTemplateGeneration":7}`: 7, `{"resourceTemplateGeneration":"7"}`: 0} {
		if got := ParseProgress(&runtime.RawExtension{Raw: []byte(status)}).TemplateGeneration; got != want {
			t.Errorf("ProgressOf(%s).TemplateGeneration = %d, want %d", status, got, want)
		}
	}
}
