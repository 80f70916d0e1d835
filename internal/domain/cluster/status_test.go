package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		"nobody has looked yet":                   {"", nil, []corev1.Taint{notReady}},
		"not ready":                               {metav1.ConditionFalse, []corev1.Taint{gpu}, []corev1.Taint{gpu, notReady}},
		"unknown replaces not ready":              {metav1.ConditionUnknown, []corev1.Taint{notReady, gpu}, []corev1.Taint{gpu, unreachable}},
		"ready keeps what others set":             {metav1.ConditionTrue, []corev1.Taint{unreachable, gpu}, []corev1.Taint{gpu}},
		"a taint that is there keeps its time":    {metav1.ConditionFalse, []corev1.Taint{notReady}, []corev1.Taint{notReady}},
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

func TestMergeEnablementsForgetsNothingOnAPartialAnswer(t *testing.T) {
	apps := clusterv1alpha1.APIEnablement{GroupVersion: "apps/v1"}
	batch := clusterv1alpha1.APIEnablement{GroupVersion: "batch/v1"}
	cases := map[string]struct {
		last, seen []clusterv1alpha1.APIEnablement
		complete   bool
		want       []clusterv1alpha1.APIEnablement
	}{
		"a complete answer replaces the last":     {[]clusterv1alpha1.APIEnablement{apps, batch}, []clusterv1alpha1.APIEnablement{batch}, true, []clusterv1alpha1.APIEnablement{batch}},
		"a partial answer keeps what it lacks":    {[]clusterv1alpha1.APIEnablement{apps}, []clusterv1alpha1.APIEnablement{batch}, false, []clusterv1alpha1.APIEnablement{apps, batch}},
		"an empty answer keeps everything it had": {[]clusterv1alpha1.APIEnablement{apps}, nil, true, []clusterv1alpha1.APIEnablement{apps}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, MergeEnablements(tc.last, tc.seen, tc.complete)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSummarise(t *testing.T) {
	list := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
		}
	}
	requests := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	nodes := []Node{
		{Name: "a", Ready: true, Allocatable: list("4", "20Gi", "10")},
		{Name: "full", Ready: true, Allocatable: list("64", "256Gi", "1")},
		{Name: "b", Ready: false, Allocatable: list("7", "5Gi", "10")},
	}
	pods := []Pod{{Node: "a", Requests: requests("500m")}, {Node: "full", Requests: requests("1")}, {Requests: requests("2")}}
	count, sum := Summarise(nodes, pods, DefaultModels())
	if diff := cmp.Diff(&clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2}, count); diff != "" {
		t.Error(diff)
	}
	for name, pair := range map[string][2]resource.Quantity{
		"allocatable cpu":  {resource.MustParse("75"), sum.Allocatable[corev1.ResourceCPU]},
		"allocated cpu":    {resource.MustParse("1500m"), sum.Allocated[corev1.ResourceCPU]},
		"allocated pods":   {resource.MustParse("2"), sum.Allocated[corev1.ResourcePods]},
		"allocating cpu":   {resource.MustParse("2"), sum.Allocating[corev1.ResourceCPU]},
		"allocating count": {resource.MustParse("1"), sum.Allocating[corev1.ResourcePods]},
	} {
		if pair[0].Cmp(pair[1]) != 0 {
			t.Errorf("%s = %s, want %s", name, pair[1].String(), pair[0].String())
		}
	}
	// 3.5 cores and 20Gi are free on a: grade 2. On b memory decides: grade 1. The
	// full node in between is left out and ends nothing.
	grades := map[uint]int{}
	for _, modeling := range sum.AllocatableModelings {
		grades[modeling.Grade] = modeling.Count
	}
	if len(sum.AllocatableModelings) != 9 || grades[2] != 1 || grades[1] != 1 || grades[0]+grades[8] != 0 {
		t.Errorf("grades: %v", grades)
	}
}
