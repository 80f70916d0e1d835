package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
)

func TestWarnIneffectiveRemedies(t *testing.T) {
	matching := func(operator remedyv1alpha1.ClusterConditionOperator, status metav1.ConditionStatus) remedyv1alpha1.RemedySpec {
		return remedyv1alpha1.RemedySpec{DecisionMatches: []remedyv1alpha1.DecisionMatch{{
			ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{ConditionType: "DNS", Operator: operator, ConditionStatus: status},
		}}}
	}
	selecting := func(names ...string) remedyv1alpha1.RemedySpec {
		return remedyv1alpha1.RemedySpec{ClusterAffinity: &remedyv1alpha1.ClusterAffinity{ClusterNames: names}}
	}
	tests := map[string]struct {
		spec      remedyv1alpha1.RemedySpec
		noActions bool
		want      []string
	}{
		"a Remedy for all clusters":           {},
		"a match of a condition":              {spec: matching(remedyv1alpha1.ClusterConditionNotEqual, metav1.ConditionTrue)},
		"a Remedy without actions":            {noActions: true, want: []string{"spec.actions: is empty, so the Remedy has no effect: add an action, such as TrafficControl"}},
		"a cluster that exists":               {spec: selecting("member1")},
		"a cluster that does not exist":       {spec: selecting("member1", "membr1"), want: []string{`spec.clusterAffinity.clusterNames[1]: there is no cluster "membr1"; did you mean "member1"?`}},
		"a name that no cluster can have":     {spec: selecting("Member_1"), want: []string{`spec.clusterAffinity.clusterNames[0]: selects nothing: no cluster can be named "Member_1"`}},
		"an affinity without names":           {spec: selecting(), want: []string{"spec.clusterAffinity.clusterNames: is empty, so the Remedy selects no cluster: omit clusterAffinity to select all clusters"}},
		"an empty list of matches":            {spec: remedyv1alpha1.RemedySpec{DecisionMatches: []remedyv1alpha1.DecisionMatch{}}, want: []string{"spec.decisionMatches: is an empty list, which matches no cluster: omit it to match always"}},
		"an empty match":                      {spec: remedyv1alpha1.RemedySpec{DecisionMatches: []remedyv1alpha1.DecisionMatch{{}}}, want: []string{"spec.decisionMatches[0].clusterConditionMatch: is missing, so the entry matches no cluster"}},
		"an unknown operator":                 {spec: matching("In", metav1.ConditionTrue), want: []string{`spec.decisionMatches[0].clusterConditionMatch.operator: "In" matches no cluster; use Equal or NotEqual`}},
		"a status that no condition can have": {spec: matching(remedyv1alpha1.ClusterConditionEqual, "false"), want: []string{`spec.decisionMatches[0].clusterConditionMatch.conditionStatus: no condition has the status "false"; use True, False or Unknown`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := Options{ClusterNames: func([]string) sets.Set[string] { return sets.New("member1") }}
			remedy := &remedyv1alpha1.Remedy{Spec: test.spec}
			if !test.noActions {
				remedy.Spec.Actions = []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}
			}
			violations, warnings := rules.Validate(remedy, nil)
			if diff := cmp.Diff(test.want, warnings); diff != "" || len(violations) > 0 {
				t.Errorf("errors %v, warnings (-want +got):\n%s", violations, diff)
			}
		})
	}
}
