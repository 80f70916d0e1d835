package taint

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

func in(conditionType string, statuses ...metav1.ConditionStatus) policyv1alpha1.MatchCondition {
	return policyv1alpha1.MatchCondition{ConditionType: conditionType, Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: statuses}
}

func notIn(conditionType string, statuses ...metav1.ConditionStatus) policyv1alpha1.MatchCondition {
	match := in(conditionType, statuses...)
	match.Operator = policyv1alpha1.MatchConditionOpNotIn
	return match
}

// when is a list of conditions that all have to match.
func when(matches ...policyv1alpha1.MatchCondition) []policyv1alpha1.MatchCondition { return matches }

type policy = policyv1alpha1.ClusterTaintPolicy

// policyOf says when a taint NoSchedule of that key is added and removed.
func policyOf(name string, age time.Duration, key, value string, addOn, removeOn []policyv1alpha1.MatchCondition) policy {
	return policy{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: addOn, RemoveOnConditions: removeOn,
			Taints: []policyv1alpha1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

func taintOf(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
}

func TestTaintsFollowThePolicies(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	own := corev1.Taint{Key: "gpu", Value: "only", Effect: corev1.TaintEffectNoSchedule}
	there := corev1.Taint{Key: "dns", Value: "mine", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &old}
	forced := corev1.Taint{Key: "dns", Effect: corev1.TaintEffectNoExecute, TimeAdded: &old}
	broken, fine := when(in("DNS", no)), when(in("DNS", yes))
	elsewhere := policyOf("a", 1, "dns", "", broken, nil)
	elsewhere.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	named := policyOf("a", 1, "dns", "", broken, nil)
	named.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "x"}}}
	tests := map[string]struct {
		conditions map[string]metav1.ConditionStatus
		before     []corev1.Taint
		policies   []policy
		want       []corev1.Taint
	}{
		"no policy changes nothing":                         {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{own}, nil, []corev1.Taint{own}},
		"a condition that matches adds a taint":             {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{own}, []policy{policyOf("a", 1, "dns", "", broken, fine)}, []corev1.Taint{own, taintOf("dns", "")}},
		"a condition that matches removes a taint":          {map[string]metav1.ConditionStatus{"DNS": yes}, []corev1.Taint{there, own}, []policy{policyOf("a", 1, "dns", "", broken, fine)}, []corev1.Taint{own}},
		"a condition that matches neither keeps a taint":    {map[string]metav1.ConditionStatus{"DNS": unknown}, []corev1.Taint{there}, []policy{policyOf("a", 1, "dns", "", broken, fine)}, []corev1.Taint{there}},
		"a taint that is there keeps its value and time":    {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{there}, []policy{policyOf("a", 1, "dns", "new", broken, fine)}, []corev1.Taint{there}},
		"a taint of another effect is another one":          {map[string]metav1.ConditionStatus{"DNS": yes}, []corev1.Taint{forced}, []policy{policyOf("a", 1, "dns", "", broken, fine)}, []corev1.Taint{forced}},
		"a condition that is not there never matches In":    {nil, nil, []policy{policyOf("a", 1, "dns", "", broken, nil)}, nil},
		"a condition that is not there never matches NotIn": {nil, nil, []policy{policyOf("a", 1, "dns", "", when(notIn("DNS", yes)), nil)}, nil},
		"NotIn matches every other status":                  {map[string]metav1.ConditionStatus{"DNS": unknown}, nil, []policy{policyOf("a", 1, "dns", "", when(notIn("DNS", yes)), nil)}, []corev1.Taint{taintOf("dns", "")}},
		"no conditions never match":                         {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{there}, []policy{policyOf("a", 1, "dns", "", nil, nil)}, []corev1.Taint{there}},
		"all conditions have to match":                      {map[string]metav1.ConditionStatus{"DNS": no, "Ready": yes}, nil, []policy{policyOf("a", 1, "dns", "", when(in("DNS", no), in("Ready", no)), nil)}, nil},
		"an operator that nobody knows matches nothing":     {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{policyOf("a", 1, "dns", "", when(policyv1alpha1.MatchCondition{ConditionType: "DNS", Operator: "Is", StatusValues: []metav1.ConditionStatus{no}}), nil)}, nil},
		"a policy that adds and removes the same removes":   {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{policyOf("a", 1, "dns", "", broken, broken)}, nil},
		"the younger of two policies decides":               {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{policyOf("b", 1, "dns", "", nil, broken), policyOf("a", 2, "dns", "", broken, nil)}, nil},
		"the older of two policies gives the value":         {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{policyOf("b", 1, "dns", "young", broken, nil), policyOf("c", 2, "dns", "old", broken, nil)}, []corev1.Taint{taintOf("dns", "old")}},
		"of two of the same age the first by name is first": {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{policyOf("b", 1, "dns", "second", broken, nil), policyOf("a", 1, "dns", "first", broken, nil)}, []corev1.Taint{taintOf("dns", "first")}},
		"what one removes and a younger one adds was there": {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{there}, []policy{policyOf("a", 2, "dns", "", nil, broken), policyOf("b", 1, "dns", "mine", broken, nil)}, []corev1.Taint{there}},
		"with another value it is another one":              {map[string]metav1.ConditionStatus{"DNS": no}, []corev1.Taint{there}, []policy{policyOf("a", 2, "dns", "", nil, broken), policyOf("b", 1, "dns", "new", broken, nil)}, []corev1.Taint{taintOf("dns", "new")}},
		"a policy for other clusters says nothing":          {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{elsewhere}, nil},
		"a policy for clusters with a label":                {map[string]metav1.ConditionStatus{"DNS": no}, nil, []policy{named}, []corev1.Taint{taintOf("dns", "")}},
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
			if diff := cmp.Diff(test.want, ByPolicies(cluster, test.policies, now), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.before, cluster.Spec.Taints); diff != "" {
				t.Errorf("the cluster was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAnswerDoesNotDependOnTheOrderOfPoliciesAndHasNoDoubles(t *testing.T) {
	statuses := []metav1.ConditionStatus{yes, no, unknown}
	rapid.Check(t, func(t *rapid.T) {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		cluster.Status.Conditions = []metav1.Condition{{Type: "A", Status: rapid.SampledFrom(statuses).Draw(t, "status")}}
		var policies []policy
		for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
			match := func(what string) []policyv1alpha1.MatchCondition {
				return when(in("A", rapid.SampledFrom(statuses).Draw(t, what)))
			}
			policies = append(policies, policyOf(string(rune('a'+i)), time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second,
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key"), rapid.SampledFrom([]string{"", "v"}).Draw(t, "value"), match("add"), match("remove")))
		}
		first := ByPolicies(cluster, policies, now)
		if diff := cmp.Diff(first, ByPolicies(cluster, rapid.Permutation(policies).Draw(t, "order"), now)); diff != "" {
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

func TestPoliciesAreAskedAnewWhenTheirAnswerMayChange(t *testing.T) {
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
			if got := Concerns(test.older, test.newer); got != test.want {
				t.Errorf("Concerns = %t, want %t", got, test.want)
			}
		})
	}
}
