package nodecapacity

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ownedBy(apiVersion, kind, name, uid string) metav1.ObjectMeta {
	isController := true
	return metav1.ObjectMeta{Labels: map[string]string{"app": name}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: "not a controller"},
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: &isController},
	}}
}

func pendingPod(meta metav1.ObjectMeta, waiting time.Duration) *UnschedulablePod {
	return NewUnschedulablePod(&corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse},
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(noon.Add(-waiting))},
	}}})
}

func TestNewUnschedulablePod(t *testing.T) {
	tests := map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"no condition":      {nil, false},
		"scheduled":         {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}, false},
		"unschedulable":     {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}, true},
		"gated":             {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}, false},
		"another condition": {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NewUnschedulablePod(&corev1.Pod{Status: corev1.PodStatus{Conditions: test.conditions}}); (got != nil) != test.want {
				t.Errorf("%+v, want unschedulable: %t", got, test.want)
			}
		})
	}
}

func TestCountUnschedulable(t *testing.T) {
	deployment := Owner{Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Name: "web"}
	pods := []*UnschedulablePod{
		pendingPod(ownedBy("apps/v1", "ReplicaSet", "web-1", "old"), time.Hour),
		pendingPod(ownedBy("apps/v1", "ReplicaSet", "web-2", "new"), time.Hour),
		pendingPod(ownedBy("apps/v1", "ReplicaSet", "web-2", "new"), time.Minute),
		pendingPod(ownedBy("apps/v1", "StatefulSet", "db", "s"), time.Hour),
		pendingPod(ownedBy("other/v1", "StatefulSet", "db", "new"), time.Hour),
		pendingPod(metav1.ObjectMeta{Labels: map[string]string{"app": "db"}}, time.Hour),
	}
	tests := map[string]struct {
		belongs   PodFilter
		threshold time.Duration
		want      int32
	}{
		"only Pods of the newest ReplicaSet":    {OwnedPods(deployment, &ReplicaSet{UID: "new"}), 0, 2},
		"only Pods over the threshold":          {OwnedPods(deployment, &ReplicaSet{UID: "new"}), 5 * time.Minute, 1},
		"a Pod at the threshold does not count": {OwnedPods(deployment, &ReplicaSet{UID: "new"}), time.Hour, 0},
		"a workload without ReplicaSets":        {OwnedPods(deployment, nil), 0, 0},
		"a workload that owns Pods":             {OwnedPods(Owner{Kind: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, Name: "db"}, nil), 0, 1},
		"a ReplicaSet":                          {OwnedPods(Owner{Kind: replicaSetKind, Name: "web-1"}, nil), 0, 1},
		"a selector":                            {SelectedPods(labels.SelectorFromSet(labels.Set{"app": "db"})), 0, 3},
		"a selector that matches no Pod":        {SelectedPods(labels.Nothing()), 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CountUnschedulable(pods, test.belongs, test.threshold, noon); got != test.want {
				t.Errorf("%d Pods, want %d", got, test.want)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	set := func(uid, revision string, age time.Duration) ReplicaSet {
		return NewReplicaSet(&metav1.ObjectMeta{UID: types.UID(uid), Annotations: map[string]string{revisionAnnotation: revision}, CreationTimestamp: metav1.NewTime(noon.Add(-age))})
	}
	tests := map[string]struct {
		sets []ReplicaSet
		want types.UID
	}{
		"none":                            {nil, ""},
		"the largest revision":            {[]ReplicaSet{set("a", "9", 0), set("b", "10", time.Hour)}, "b"},
		"without revisions the youngest":  {[]ReplicaSet{set("a", "", time.Hour), set("b", "", 0)}, "b"},
		"an invalid revision counts as 0": {[]ReplicaSet{set("a", "99999999999999999999", 0), set("b", "1", time.Hour)}, "b"},
		"equal ReplicaSets":               {[]ReplicaSet{set("b", "1", 0), set("a", "1", 0)}, "b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := types.UID("")
			if newest := Newest(test.sets); newest != nil {
				got = newest.UID
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
