package placement

import (
	"testing"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestWantsNoCopy(t *testing.T) {
	zero := func(strategy *policyv1alpha1.ReplicaSchedulingStrategy, current ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
		spec := deployment(0, policyv1alpha1.Placement{ReplicaScheduling: strategy}, current...)
		spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		return spec
	}
	withoutReplicas := zero(evenly)
	withoutReplicas.ReplicaRequirements = nil
	tests := map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want bool
	}{
		"0 divided replicas":                    {zero(evenly), true},
		"a cluster still has the workload":      {zero(evenly, target("a", 0)), false},
		"0 duplicated replicas are in clusters": {zero(duplicate), false},
		"replicas without a cluster":            {deployment(2, policyv1alpha1.Placement{ReplicaScheduling: evenly}), false},
		"a kind without replicas":               {withoutReplicas, false},
		"no placement":                          {&workv1alpha2.ResourceBindingSpec{ReplicaRequirements: &workv1alpha2.ReplicaRequirements{}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := WantsNoCopy(test.spec); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
