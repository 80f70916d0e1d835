package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
)

func newRemedy(affinity []string, matches []remedyv1alpha1.DecisionMatch, actions ...remedyv1alpha1.RemedyAction) remedyv1alpha1.Remedy {
	created := remedyv1alpha1.Remedy{Spec: remedyv1alpha1.RemedySpec{DecisionMatches: matches, Actions: actions}}
	if affinity != nil {
		created.Spec.ClusterAffinity = &remedyv1alpha1.ClusterAffinity{ClusterNames: affinity}
	}
	return created
}

func matchCondition(kind string, operator remedyv1alpha1.ClusterConditionOperator, status metav1.ConditionStatus) remedyv1alpha1.DecisionMatch {
	return remedyv1alpha1.DecisionMatch{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
		ConditionType: kind, Operator: operator, ConditionStatus: status,
	}}
}

func anyOf(matches ...remedyv1alpha1.DecisionMatch) []remedyv1alpha1.DecisionMatch { return matches }

func TestRemedyActions(t *testing.T) {
	const stop, other = remedyv1alpha1.TrafficControl, remedyv1alpha1.RemedyAction("Alert")
	const equal, notEqual = remedyv1alpha1.ClusterConditionEqual, remedyv1alpha1.ClusterConditionNotEqual
	isDown := matchCondition("DNS", equal, no)
	tests := map[string]struct {
		dns      metav1.ConditionStatus
		remedies []remedyv1alpha1.Remedy
		want     []string
	}{
		"no Remedy requires no action":                        {dns: no},
		"a Remedy without affinity and matches always acts":   {remedies: []remedyv1alpha1.Remedy{newRemedy(nil, nil, stop)}, want: []string{"TrafficControl"}},
		"a Remedy that names the cluster":                     {remedies: []remedyv1alpha1.Remedy{newRemedy([]string{"m2", "m1"}, nil, stop)}, want: []string{"TrafficControl"}},
		"a Remedy that names another cluster":                 {remedies: []remedyv1alpha1.Remedy{newRemedy([]string{"m2"}, nil, stop)}},
		"an affinity without names selects no cluster":        {remedies: []remedyv1alpha1.Remedy{newRemedy([]string{}, nil, stop)}},
		"an empty list of matches never matches":              {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf([]remedyv1alpha1.DecisionMatch{}...), stop)}},
		"Equal matches the same status":                       {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(isDown), stop)}, want: []string{"TrafficControl"}},
		"Equal does not match another status":                 {dns: unknown, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(isDown), stop)}},
		"NotEqual matches another status":                     {dns: unknown, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(matchCondition("DNS", notEqual, yes)), stop)}, want: []string{"TrafficControl"}},
		"NotEqual does not match the same status":             {dns: yes, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(matchCondition("DNS", notEqual, yes)), stop)}},
		"a missing condition does not match Equal":            {remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(isDown), stop)}},
		"a missing condition does not match NotEqual":         {remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(matchCondition("DNS", notEqual, yes)), stop)}},
		"an unknown operator does not match":                  {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(matchCondition("DNS", "In", no)), stop)}},
		"a match without a condition does not match":          {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(remedyv1alpha1.DecisionMatch{}), stop)}},
		"one of several matches is enough":                    {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(remedyv1alpha1.DecisionMatch{}, matchCondition("Ready", equal, no), isDown), stop)}, want: []string{"TrafficControl"}},
		"the actions of all Remedies are sorted and unique":   {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, nil, stop, other), newRemedy(nil, anyOf(isDown), stop)}, want: []string{"Alert", "TrafficControl"}},
		"a Remedy that does not match cannot prevent actions": {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, anyOf(isDown), stop), newRemedy(nil, anyOf(matchCondition("DNS", equal, yes)))}, want: []string{"TrafficControl"}},
		"a Remedy without actions adds nothing":               {dns: no, remedies: []remedyv1alpha1.Remedy{newRemedy(nil, nil)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			if test.dns != "" {
				cluster.Status.Conditions = []metav1.Condition{{Type: "DNS", Status: test.dns}}
			}
			if diff := cmp.Diff(test.want, RemedyActions(cluster, test.remedies), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemedyActionsAreTheUnion compares the actions of several Remedies with the actions that each of
// them requires alone, in any order.
func TestRemedyActionsAreTheUnion(t *testing.T) {
	statuses := []metav1.ConditionStatus{yes, no, unknown}
	operators := []remedyv1alpha1.ClusterConditionOperator{remedyv1alpha1.ClusterConditionEqual, remedyv1alpha1.ClusterConditionNotEqual, "In"}
	affinities := [][]string{nil, {}, {"m1"}, {"m2"}}
	actions := []remedyv1alpha1.RemedyAction{"A", "B", "C"}
	remedies := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) remedyv1alpha1.Remedy {
		match := matchCondition(rapid.SampledFrom([]string{"DNS", "Ready"}).Draw(t, "type"),
			rapid.SampledFrom(operators).Draw(t, "operator"), rapid.SampledFrom(statuses).Draw(t, "wanted"))
		matches := rapid.SampledFrom([][]remedyv1alpha1.DecisionMatch{nil, {}, {match}, {{}, match}}).Draw(t, "matches")
		return newRemedy(rapid.SampledFrom(affinities).Draw(t, "affinity"), matches, rapid.SliceOf(rapid.SampledFrom(actions)).Draw(t, "actions")...)
	}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		cluster.Status.Conditions = []metav1.Condition{{Type: "DNS", Status: rapid.SampledFrom(statuses).Draw(t, "status")}}
		all := remedies.Draw(t, "remedies")
		var union []string
		for i := range all {
			union = append(union, RemedyActions(cluster, all[i:i+1])...)
		}
		slices.Sort(union)
		got := RemedyActions(cluster, rapid.Permutation(all).Draw(t, "order"))
		if diff := cmp.Diff(slices.Compact(union), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("actions (-union +got):\n%s", diff)
		}
	})
}

func TestNeedsRemedyUpdate(t *testing.T) {
	cluster := func(dns metav1.ConditionStatus, message string, actions ...string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{
			RemedyActions: actions, Conditions: []metav1.Condition{{Type: "DNS", Status: dns, Message: message}},
		}}
	}
	tests := map[string]struct {
		older, newer *clusterv1alpha1.Cluster
		want         bool
	}{
		"another status of a condition":   {cluster(yes, ""), cluster(no, ""), true},
		"a new condition":                 {&clusterv1alpha1.Cluster{}, cluster(no, ""), true},
		"an action that somebody removed": {cluster(no, "", "TrafficControl"), cluster(no, ""), true},
		"another message of a condition":  {cluster(yes, "a"), cluster(yes, "b"), false},
		"nothing":                         {cluster(yes, "", "A"), cluster(yes, "", "A"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NeedsRemedyUpdate(test.older, test.newer); got != test.want {
				t.Errorf("NeedsRemedyUpdate = %t, want %t", got, test.want)
			}
		})
	}
}
