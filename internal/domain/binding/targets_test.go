package binding

import (
	"testing"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestAwaitsReplicas(t *testing.T) {
	tests := map[string]struct {
		replicas   int32
		components int
		clusters   []int32
		want       bool
	}{
		"a template without replicas":           {replicas: 0, clusters: []int32{0, 0}},
		"no cluster is chosen":                  {replicas: 5},
		"no cluster has replicas":               {replicas: 5, clusters: []int32{0, 0}, want: true},
		"the descheduler emptied one of two":    {replicas: 5, clusters: []int32{3, 0}},
		"components":                            {replicas: 5, components: 2, clusters: []int32{0}},
		"all replicas are assigned":             {replicas: 5, clusters: []int32{5}},
		"fewer replicas than the template has":  {replicas: 5, clusters: []int32{1}},
		"a template that is scaled down to 0":   {replicas: 0, clusters: []int32{5}},
		"a placement with a share of a cluster": {replicas: 5, clusters: []int32{0, 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Replicas: test.replicas, Components: make([]workv1alpha2.Component, test.components)}
			for _, replicas := range test.clusters {
				spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: "m", Replicas: replicas})
			}
			if got := AwaitsReplicas(spec); got != test.want {
				t.Errorf("AwaitsReplicas = %t, want %t", got, test.want)
			}
		})
	}
}
