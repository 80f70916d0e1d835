package up

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestEveryThirdMemberHasAnAgentUnlessSomebodySaysHowMany(t *testing.T) {
	tests := map[string]struct {
		members, count int
		want           []string
	}{
		"two have none":                      {2, -1, nil},
		"three have one":                     {3, -1, []string{"member3"}},
		"one more changes no other":          {4, -1, []string{"member3"}},
		"seven have two":                     {7, -1, []string{"member3", "member6"}},
		"none when none are wanted":          {3, 0, nil},
		"the third is the first to have one": {4, 1, []string{"member3"}},
		"then the last":                      {4, 2, []string{"member3", "member4"}},
		"all":                                {3, 3, []string{"member3", "member2", "member1"}},
		"no members":                         {0, -1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := choosePull(memberNames(test.members), test.count)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("members with an agent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnAgentSaidBeforeIsNoNews(t *testing.T) {
	began := time.Now()
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode, ready metav1.ConditionStatus) clusterv1alpha1.Cluster {
		c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
		return c
	}
	clusters := []clusterv1alpha1.Cluster{
		cluster("push", clusterv1alpha1.Push, metav1.ConditionTrue), cluster("broken", clusterv1alpha1.Push, metav1.ConditionFalse),
		cluster("back", clusterv1alpha1.Pull, metav1.ConditionTrue), cluster("silent", clusterv1alpha1.Pull, metav1.ConditionTrue),
		cluster("new", clusterv1alpha1.Pull, metav1.ConditionTrue),
	}
	renewed := map[string]time.Time{"back": began.Add(time.Second), "silent": began.Add(-time.Second)}
	got := notReady(clusters, renewed, []string{"push", "broken", "back", "silent", "new", "absent"}, began)
	if diff := cmp.Diff([]string{"broken", "silent", "new", "absent"}, got); diff != "" {
		t.Errorf("clusters that are waited for (-want +got):\n%s", diff)
	}
}
