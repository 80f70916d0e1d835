package placement

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestAvoidedClusters(t *testing.T) {
	everywhere := policyv1alpha1.Placement{}
	inOne := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy(policyv1alpha1.SpreadByFieldCluster, 1, 1)}}
	inTwo := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy(policyv1alpha1.SpreadByFieldCluster, 2, 2)}}
	tests := map[string]struct {
		placement policyv1alpha1.Placement
		avoid     []string
		change    func(*Input)
		want      []string
	}{
		"no avoided cluster":                   {everywhere, nil, nil, []string{"a", "b"}},
		"one of two avoided":                   {everywhere, []string{"a"}, nil, []string{"b"}},
		"all clusters avoided":                 {everywhere, []string{"a", "b"}, nil, []string{"a", "b"}},
		"the other cluster is equivalent":      {inOne, []string{"a"}, nil, []string{"b"}},
		"all clusters are needed":              {inTwo, []string{"a"}, nil, []string{"a", "b"}},
		"all avoided strictly":                 {everywhere, []string{"a", "b"}, func(i *Input) { i.AvoidStrictly = true }, nil},
		"a current target stays":               {everywhere, []string{"a"}, func(i *Input) { i.Spec.Clusters = []workv1alpha2.TargetCluster{target("a", 0)} }, []string{"a", "b"}},
		"a changed placement takes precedence": {everywhere, []string{"a"}, func(i *Input) { i.AppliedPlacement = `{"clusterTolerations":[{"key":"k"}]}` }, []string{"a", "b"}},
		"a reschedule request takes precedence": {everywhere, []string{"a"}, func(i *Input) {
			i.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
			i.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(2, 0)}
		}, []string{"a", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			applied, err := json.Marshal(test.placement)
			if err != nil {
				t.Fatal(err)
			}
			input := Input{
				Spec: &workv1alpha2.ResourceBindingSpec{Placement: &test.placement}, Status: &workv1alpha2.ResourceBindingStatus{},
				AppliedPlacement: string(applied), AvoidClusters: sets.New(test.avoid...),
			}
			input.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"}
			for _, name := range []string{"b", "a"} {
				cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
				cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}}}
				input.Clusters = append(input.Clusters, cluster)
			}
			if test.change != nil {
				test.change(&input)
			}
			result, err := Schedule(input)
			if (err != nil) != (test.want == nil) {
				t.Fatal(err)
			}
			var got []string
			for _, each := range result.Clusters {
				got = append(got, each.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}
