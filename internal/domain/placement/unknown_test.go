package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestUnknownClusters(t *testing.T) {
	find := func(name string) *clusterv1alpha1.Cluster {
		if !strings.HasPrefix(name, "member") {
			return nil
		}
		return &clusterv1alpha1.Cluster{}
	}
	named := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	groups := &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: named("first")},
		{AffinityName: "second", ClusterAffinity: named("member2"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{ClusterAffinity: named("cloud")}}},
		{AffinityName: "third", ClusterAffinity: named("third")},
	}}
	misspelt := named("membre2", "member1", "memer3", "membre2")
	tests := map[string]struct {
		placement *policyv1alpha1.Placement
		failed    bool
		want      []string
		remark    string
	}{
		"a binding without a placement names none": {},
		"a placement for all clusters names none":  {placement: &policyv1alpha1.Placement{}},
		"existing clusters": {
			placement: &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}},
		},
		"an excluded cluster may be unknown": {
			placement: &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"gone"}}},
		},
		"each unknown name once, in order": {
			placement: &policyv1alpha1.Placement{ClusterAffinity: &misspelt}, want: []string{"membre2", "memer3"},
			remark: `The placement names clusters "membre2", "memer3", which do not exist: correct the names, or join the clusters.`,
		},
		"the group in use with its overflow groups": {
			placement: groups, want: []string{"cloud"},
			remark: `The placement names cluster "cloud", which does not exist: correct the name, or join the cluster.`,
		},
		"after a failure all groups": {
			placement: groups, failed: true, want: []string{"first", "cloud", "third"},
			remark: `The placement names clusters "first", "cloud", "third", which do not exist: correct the names, or join the clusters.`,
		},
		"a message names at most five": {
			placement: &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a", "b", "c", "d", "e", "f", "g"}}},
			want:      []string{"a", "b", "c", "d", "e", "f", "g"},
			remark:    `The placement names clusters "a", "b", "c", "d", "e", 2 more, which do not exist: correct the names, or join the clusters.`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := UnknownClusters(tc.placement, "second", tc.failed, find)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remark, DescribeUnknownClusters(got)); diff != "" {
				t.Errorf("remark (-want +got):\n%s", diff)
			}
		})
	}
}
