package up

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestChoosePullMembers(t *testing.T) {
	tests := map[string]struct {
		members, count int
		want           []string
	}{
		"none of two":      {2, -1, nil},
		"one of three":     {3, -1, []string{"member3"}},
		"one of four":      {4, -1, []string{"member3"}},
		"two of seven":     {7, -1, []string{"member3", "member6"}},
		"count 0":          {3, 0, nil},
		"count 1 of four":  {4, 1, []string{"member3"}},
		"count 2 of four":  {4, 2, []string{"member3", "member4"}},
		"count 3 of three": {3, 3, []string{"member3", "member2", "member1"}},
		"no members":       {0, -1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := choosePullMembers(newMembers(test.members), test.count)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pull mode members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotReadyClustersIgnoresOldStatus(t *testing.T) {
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
	got := notReadyClusters(clusters, renewed, []string{"push", "broken", "back", "silent", "new", "absent"}, began)
	if diff := cmp.Diff([]string{"broken", "silent", "new", "absent"}, got); diff != "" {
		t.Errorf("clusters that are not ready (-want +got):\n%s", diff)
	}
}
