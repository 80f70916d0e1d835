package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestHealthTaints(t *testing.T) {
	now := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	notReady := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	unreachable := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	gpu := corev1.Taint{Key: "gpu", Value: "only", Effect: corev1.TaintEffectNoSchedule}
	cases := map[string]struct {
		status metav1.ConditionStatus
		before []corev1.Taint
		want   []corev1.Taint
	}{
		"no condition yet":                        {"", nil, []corev1.Taint{notReady}},
		"not ready":                               {metav1.ConditionFalse, []corev1.Taint{gpu}, []corev1.Taint{gpu, notReady}},
		"unknown replaces not ready":              {metav1.ConditionUnknown, []corev1.Taint{notReady, gpu}, []corev1.Taint{gpu, unreachable}},
		"ready keeps other taints":                {metav1.ConditionTrue, []corev1.Taint{unreachable, gpu}, []corev1.Taint{gpu}},
		"an existing taint keeps its time":        {metav1.ConditionFalse, []corev1.Taint{notReady}, []corev1.Taint{notReady}},
		"a ready cluster without taints has none": {metav1.ConditionTrue, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Taints: tc.before}}
			if tc.status != "" {
				cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: tc.status}}
			}
			if diff := cmp.Diff(tc.want, HealthTaints(cluster, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMergeAPIEnablements(t *testing.T) {
	type apis = []clusterv1alpha1.APIEnablement
	apps, batch, crd := clusterv1alpha1.APIEnablement{GroupVersion: "apps/v1"}, clusterv1alpha1.APIEnablement{GroupVersion: "batch/v1"}, clusterv1alpha1.APIEnablement{GroupVersion: "example.io/v1"}
	nothing := func(string) bool { return true }
	notApps := func(groupVersion string) bool { return groupVersion == "apps/v1" }
	cases := map[string]struct {
		last, seen apis
		unheard    func(string) bool
		want       apis
	}{
		"a complete result replaces the last":                      {last: apis{apps, batch}, seen: apis{batch}, want: apis{batch}},
		"a partial result keeps entries that were not read":        {last: apis{apps}, seen: apis{batch}, unheard: nothing, want: apis{apps, batch}},
		"a removed group is dropped although others were not read": {last: apis{apps, crd}, seen: apis{batch}, unheard: notApps, want: apis{apps, batch}},
		"an entry that was read wins":                              {last: apis{apps}, seen: apis{apps, batch}, unheard: notApps, want: apis{apps, batch}},
		"an empty result keeps all entries":                        {last: apis{apps}, want: apis{apps}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, MergeAPIEnablements(tc.last, tc.seen, tc.unheard)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
