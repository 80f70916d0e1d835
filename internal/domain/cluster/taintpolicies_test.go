package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

var now = metav1.NewTime(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func conditionIn(conditionType string, statuses ...metav1.ConditionStatus) policyv1alpha1.MatchCondition {
	return policyv1alpha1.MatchCondition{ConditionType: conditionType, Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: statuses}
}

func conditionNotIn(conditionType string, statuses ...metav1.ConditionStatus) policyv1alpha1.MatchCondition {
	match := conditionIn(conditionType, statuses...)
	match.Operator = policyv1alpha1.MatchConditionOpNotIn
	return match
}

// allOf returns a list of conditions that must all match.
func allOf(matches ...policyv1alpha1.MatchCondition) []policyv1alpha1.MatchCondition { return matches }

type policy = policyv1alpha1.ClusterTaintPolicy

// newPolicy returns a policy that adds and removes a NoSchedule taint with the given key.
func newPolicy(name string, age time.Duration, key, value string, addOn, removeOn []policyv1alpha1.MatchCondition) policy {
	return policy{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: addOn, RemoveOnConditions: removeOn,
			Taints: []policyv1alpha1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

func newTaint(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
}

func TestApplyTaintPolicies(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	own := corev1.Taint{Key: "gpu", Value: "only", Effect: corev1.TaintEffectNoSchedule}
	present := corev1.Taint{Key: "dns", Value: "mine", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &old}
	forced := corev1.Taint{Key: "dns", Effect: corev1.TaintEffectNoExecute, TimeAdded: &old}
	broken, fine := allOf(conditionIn("DNS", no)), allOf(conditionIn("DNS", yes))
	elsewhere := newPolicy("a", 1, "dns", "", broken, nil)
	elsewhere.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	named := newPolicy("a", 1, "dns", "", broken, nil)
	named.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "x"}}}
	tests := map[string]struct {
		conditions map[string]metav1.ConditionStatus
		before     []corev1.Taint
		policies   []policy
		want       []corev1.Taint
	}{
		"no policy changes nothing":                              {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{own}, nil, []corev1.Taint{own}},
		"a condition that matches adds a taint":                  {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{own}, []policy{newPolicy("a", 1, "dns", "", broken, fine)}, []corev1.Taint{own, newTaint("dns", "")}},
		"a condition that matches removes a taint":               {map[string]metav1.ConditionStatus{"DNS": yes}, []corev1.Taint{present, own}, []policy{newPolicy("a", 1, "dns", "", broken, fine)}, []corev1.Taint{own}},
		"a condition that matches neither keeps a taint":         {map[string]metav1.ConditionStatus{"DNS": unknown}, []corev1.Taint{present}, []policy{newPolicy("a", 1, "dns", "", broken, fine)}, []corev1.Taint{present}},
		"an existing taint keeps its value and time":             {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{present}, []policy{newPolicy("a", 1, "dns", "new", broken, fine)}, []corev1.Taint{present}},
		"a taint with another effect is a different taint":       {map[string]metav1.ConditionStatus{"DNS": yes}, []corev1.Taint{forced}, []policy{newPolicy("a", 1, "dns", "", broken, fine)}, []corev1.Taint{forced}},
		"a missing condition never matches In":                   {nil, nil, []policy{newPolicy("a", 1, "dns", "", broken, nil)}, nil},
		"a missing condition never matches NotIn":                {nil, nil, []policy{newPolicy("a", 1, "dns", "", allOf(conditionNotIn("DNS", yes)), nil)}, nil},
		"NotIn matches every other status":                       {map[string]metav1.ConditionStatus{"DNS": unknown}, nil, []policy{newPolicy("a", 1, "dns", "", allOf(conditionNotIn("DNS", yes)), nil)}, []corev1.Taint{newTaint("dns", "")}},
		"no conditions never match":                              {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{present}, []policy{newPolicy("a", 1, "dns", "", nil, nil)}, []corev1.Taint{present}},
		"all conditions have to match":                           {map[string]metav1.ConditionStatus{"DNS": no, "Ready": yes}, nil, []policy{newPolicy("a", 1, "dns", "", allOf(conditionIn("DNS", no), conditionIn("Ready", no)), nil)}, nil},
		"an unknown operator matches nothing":                    {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{newPolicy("a", 1, "dns", "", allOf(policyv1alpha1.MatchCondition{ConditionType: "DNS", Operator: "Is", StatusValues: []metav1.ConditionStatus{no}}), nil)}, nil},
		"a policy whose two conditions match removes":            {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{newPolicy("a", 1, "dns", "", broken, broken)}, nil},
		"the younger of two policies decides":                    {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{newPolicy("b", 1, "dns", "", nil, broken), newPolicy("a", 2, "dns", "", broken, nil)}, nil},
		"the older of two policies gives the value":              {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{newPolicy("b", 1, "dns", "young", broken, nil), newPolicy("c", 2, "dns", "old", broken, nil)}, []corev1.Taint{newTaint("dns", "old")}},
		"policies of the same age are applied by name":           {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{newPolicy("b", 1, "dns", "second", broken, nil), newPolicy("a", 1, "dns", "first", broken, nil)}, []corev1.Taint{newTaint("dns", "first")}},
		"a taint that is removed and added again keeps its time": {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{present}, []policy{newPolicy("a", 2, "dns", "", nil, broken), newPolicy("b", 1, "dns", "mine", broken, nil)}, []corev1.Taint{present}},
		"added again with another value, it gets a new time":     {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{present}, []policy{newPolicy("a", 2, "dns", "", nil, broken), newPolicy("b", 1, "dns", "new", broken, nil)}, []corev1.Taint{newTaint("dns", "new")}},
		"a policy for other clusters has no effect":              {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{elsewhere}, nil},
		"a policy for clusters with a label":                     {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{named}, []corev1.Taint{newTaint("dns", "")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{"zone": "x"}},
				Spec:       clusterv1alpha1.ClusterSpec{Taints: slices.Clone(test.before)},
			}
			for kind, status := range test.conditions {
				cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{Type: kind, Status: status})
			}
			if diff := cmp.Diff(test.want, ApplyTaintPolicies(cluster, test.policies, now), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.before, cluster.Spec.Taints); diff != "" {
				t.Errorf("the cluster was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyTaintPoliciesIsOrderIndependentWithoutDuplicates(t *testing.T) {
	statuses := []metav1.ConditionStatus{yes, no, unknown}
	rapid.Check(t, func(t *rapid.T) {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		cluster.Status.Conditions = []metav1.Condition{{Type: "A", Status: rapid.SampledFrom(statuses).Draw(t, "status")}}
		var policies []policy
		for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
			match := func(what string) []policyv1alpha1.MatchCondition {
				return allOf(conditionIn("A", rapid.SampledFrom(statuses).Draw(t, what)))
			}
			policies = append(policies, newPolicy(string(rune('a'+i)), time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second,
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key"), rapid.SampledFrom([]string{"", "v"}).Draw(t, "value"), match("add"), match("remove")))
		}
		first := ApplyTaintPolicies(cluster, policies, now)
		if diff := cmp.Diff(first, ApplyTaintPolicies(cluster, rapid.Permutation(policies).Draw(t, "order"), now)); diff != "" {
			t.Fatalf("in another order (-first +other):\n%s", diff)
		}
		seen := map[string]bool{}
		for _, taint := range first {
			if seen[taint.Key] {
				t.Fatalf("%s is there twice", taint.Key)
			}
			seen[taint.Key] = true
		}
	})
}

func TestNeedsTaintUpdate(t *testing.T) {
	ready := func(status metav1.ConditionStatus, message string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: status, Message: message}}}}
	}
	labelled, moved := ready(yes, ""), ready(yes, "")
	labelled.Labels = map[string]string{"zone": "x"}
	moved.Spec.Region = "south"
	tests := map[string]struct {
		older, newer *clusterv1alpha1.Cluster
		want         bool
	}{
		"another status of a condition":  {ready(yes, ""), ready(no, ""), true},
		"a new condition":                {&clusterv1alpha1.Cluster{}, ready(no, ""), true},
		"another message of a condition": {ready(yes, "a"), ready(yes, "b"), false},
		"another label":                  {ready(yes, ""), labelled, true},
		"another region":                 {ready(yes, ""), moved, true},
		"nothing":                        {ready(yes, ""), ready(yes, ""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NeedsTaintUpdate(test.older, test.newer); got != test.want {
				t.Errorf("Concerns = %t, want %t", got, test.want)
			}
		})
	}
}
