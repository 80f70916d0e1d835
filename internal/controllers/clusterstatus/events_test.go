package clusterstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop"
)

func TestReadyChangeRecordsOneEvent(t *testing.T) {
	ready := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "healthy"}
	lost := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "connection refused"}
	tests := map[string]struct {
		course []metav1.Condition
		want   []string
	}{
		"a new member that is ready":         {[]metav1.Condition{ready, ready}, nil},
		"a new member that is not reachable": {[]metav1.Condition{lost, lost}, []string{"Warning ClusterNotReachable connection refused"}},
		"a member that is lost, recovers and is lost again": {
			[]metav1.Condition{ready, lost, lost, ready, lost},
			[]string{"Warning ClusterNotReachable connection refused", "Normal ClusterReady healthy", "Warning ClusterNotReachable connection refused"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			c := &controller{events: loop.NewEvents(recorder)}
			stored := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "1"}}
			for _, condition := range test.course {
				reported := stored.DeepCopy()
				reported.Status.Conditions = []metav1.Condition{condition}
				c.recordEvents(stored, reported, probeResult{})
				stored = reported
			}
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
