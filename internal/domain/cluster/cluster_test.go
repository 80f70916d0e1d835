package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

var now = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func TestCanonicalize(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	tests := map[string]struct {
		given, want clusterv1alpha1.ClusterSpec
	}{
		"a NoExecute taint without a time gets the current time": {
			given: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}},
			want:  clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}},
		},
		"a taint with a time keeps it": {
			given: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &earlier}}},
			want:  clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &earlier}}},
		},
		"a NoSchedule taint gets no time": {
			given: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}},
			want:  clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}},
		},
		"the single zone moves into the empty list of zones": {
			given: clusterv1alpha1.ClusterSpec{Zone: "z1"},
			want:  clusterv1alpha1.ClusterSpec{Zones: []string{"z1"}},
		},
		"zone and zones together are left to validation": {
			given: clusterv1alpha1.ClusterSpec{Zone: "z1", Zones: []string{"z2"}},
			want:  clusterv1alpha1.ClusterSpec{Zone: "z1", Zones: []string{"z2"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := &clusterv1alpha1.Cluster{Spec: test.given}
			cluster.Canonicalize(got, now)
			if diff := cmp.Diff(test.want, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			again := got.DeepCopy()
			cluster.Canonicalize(again, metav1.NewTime(now.Add(time.Minute)))
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("a second pass changes the cluster (-first +second):\n%s", diff)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	t.Run("a cluster without models gets the nine grades", func(t *testing.T) {
		got := &clusterv1alpha1.Cluster{}
		cluster.Default(got)
		if diff := cmp.Diff(cluster.DefaultModels(), got.Spec.ResourceModels); diff != "" {
			t.Errorf("models (-want +got):\n%s", diff)
		}
	})
	t.Run("given models are standardised", func(t *testing.T) {
		given := []clusterv1alpha1.ResourceModel{model(7, "cpu", "5", "6"), model(3, "cpu", "1", "5")}
		got := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ResourceModels: given}}
		cluster.Default(got)
		want := []clusterv1alpha1.ResourceModel{model(3, "cpu", "0", "5"), model(7, "cpu", "5", unbounded)}
		if diff := cmp.Diff(want, got.Spec.ResourceModels); diff != "" {
			t.Errorf("models (-want +got):\n%s", diff)
		}
	})
}
