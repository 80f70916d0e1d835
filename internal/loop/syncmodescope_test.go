package loop

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func newCluster(mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member-" + string(mode)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode},
	}
}

func TestScopeIsServed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seen := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(newCluster(clusterv1alpha1.Push), newCluster(clusterv1alpha1.Pull)).Build()
	tests := map[string]struct {
		mode    clusterv1alpha1.ClusterSyncMode
		cluster string
		want    bool
	}{
		"the control plane, a cluster in push mode": {clusterv1alpha1.Push, "member-Push", true},
		"the control plane, a cluster in pull mode": {clusterv1alpha1.Push, "member-Pull", false},
		"an agent, its cluster":                     {clusterv1alpha1.Pull, "member-Pull", true},
		"an agent, a cluster in push mode":          {clusterv1alpha1.Pull, "member-Push", false},
		"a removed cluster":                         {clusterv1alpha1.Push, "member-Gone", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (SyncModeScope{Clusters: seen, Mode: tc.mode}).IsServed(t.Context(), tc.cluster); got != tc.want {
				t.Errorf("served: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestScopeSyncModeChange(t *testing.T) {
	push, pull := clusterv1alpha1.Push, clusterv1alpha1.Pull
	tests := map[string]struct {
		before, after clusterv1alpha1.ClusterSyncMode
		left, joined  bool
	}{
		"push to pull":   {push, pull, true, false},
		"pull to push":   {pull, push, false, true},
		"push unchanged": {push, push, false, false},
		"pull unchanged": {pull, pull, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scope := SyncModeScope{Mode: push}
			left, joined := scope.HasLeft(newCluster(tc.before), newCluster(tc.after)), scope.HasJoined(newCluster(tc.before), newCluster(tc.after))
			if left != tc.left || joined != tc.joined {
				t.Errorf("left: %v, joined: %v; want %v, %v", left, joined, tc.left, tc.joined)
			}
		})
	}
}
