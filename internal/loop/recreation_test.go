package loop

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestDelay(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	in := func(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(in("pushed", clusterv1alpha1.Push), in("pulls", clusterv1alpha1.Pull)).Build()
	tests := map[string]struct {
		namespace string
		want      time.Duration
	}{
		"a cluster in push mode":                        {"karmada-es-pushed", 0},
		"a cluster in pull mode":                        {"karmada-es-pulls", PullModeRecreationDelay},
		"a missing cluster":                             {"karmada-es-gone", 0},
		"another namespace":                             {"default", 0},
		"an execution namespace without a cluster name": {"karmada-es-", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			deleted := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "web"}}
			if got := RecreationDelay(t.Context(), store, deleted); got != tc.want {
				t.Errorf("Delay = %s, want %s", got, tc.want)
			}
		})
	}
}
