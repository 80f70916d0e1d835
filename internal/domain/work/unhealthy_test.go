package work

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestUnhealthyReasons(t *testing.T) {
	const (
		quota    = `{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota"}`
		late     = `{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out"}`
		pods     = `{"type":"PodFailure","status":"True","reason":"Unschedulable","message":"no node has room"}`
		onTheWay = `{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"},{"type":"Progressing","status":"True"}`
	)
	tests := map[string]struct {
		conditions string
		health     workv1alpha2.ResourceHealth
		applied    bool
		want       string
	}{
		"a quota":                      {quota, "Unhealthy", true, "FailedCreate: exceeded quota"},
		"the Pod failure comes first":  {late + "," + pods, "Unhealthy", true, "Unschedulable: no node has room; ProgressDeadlineExceeded: timed out"},
		"a condition without a reason": {`{"type":"ReplicaFailure","status":"True"}`, "Unhealthy", true, "ReplicaFailure"},
		"a long message is cut": {
			`{"type":"ReplicaFailure","status":"True","message":"` + strings.Repeat("x", 600) + `"}`, "Unhealthy", true,
			"ReplicaFailure: " + strings.Repeat("x", maxReasonBytes-len("ReplicaFailure: ")-3) + "..."},
		"a rollout in progress":              {onTheWay, "Unhealthy", true, ""},
		"a healthy workload":                 {quota, "Healthy", true, ""},
		"a workload that was not applied":    {quota, "Unhealthy", false, ""},
		"conditions that cannot be parsed":   {`1`, "Unhealthy", true, ""},
		"a condition that is no longer true": {`{"type":"ReplicaFailure","status":"False"}`, "Unhealthy", true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			items := []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", Applied: tc.applied, Health: tc.health, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[` + tc.conditions + `]}`)}},
				{ClusterName: "m2", Applied: true, Health: "Unhealthy"},
			}
			want := map[string]string{}
			if tc.want != "" {
				want["m1"] = tc.want
			}
			if diff := cmp.Diff(want, UnhealthyReasons(items)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}
