package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestPoliciesGetTheDefaultsOfTheControlPlane(t *testing.T) {
	const given = `{spec: {placement: {replicaScheduling: {}}, failover: {cluster: {}}}}`
	const want = `{spec: {conflictResolution: Abort, preemption: Never, priority: 0, schedulerName: default-scheduler,
		placement: {replicaScheduling: {replicaSchedulingType: Divided}}, failover: {cluster: {purgeMode: Gracefully}}}}`
	for _, plural := range []string{"propagationpolicies", "clusterpropagationpolicies"} {
		t.Run(plural, func(t *testing.T) {
			var got, expected map[string]any
			if err := yaml.Unmarshal([]byte(given), &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(want), &expected); err != nil {
				t.Fatal(err)
			}
			if err := setDefaults(got, plural); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
	if err := setDefaults(map[string]any{}, "ships"); err == nil {
		t.Error("no error for a kind without a definition")
	}
}
