package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/clusteraffinity"
)

func selectingLabels(labels map[string]string, expressions ...metav1.LabelSelectorRequirement) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}}
}

func selectingFields(expressions ...corev1.NodeSelectorRequirement) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: expressions}}
}

func TestBindingKeys(t *testing.T) {
	excluding := clustersNamed("a", "b")
	excluding.ExcludeClusters = []string{"b"}
	labelsAndFields := selectingLabels(nil, metav1.LabelSelectorRequirement{Key: "tier", Operator: "In", Values: []string{"1", "2"}})
	labelsAndFields.FieldSelector = selectingFields(corev1.NodeSelectorRequirement{Key: "region", Operator: "In", Values: []string{"eu"}}).FieldSelector
	groups := &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("first", "a"), affinityGroup("second", "b")}}
	tests := map[string]struct {
		placement *policyv1alpha1.Placement
		observed  int64
		want      []string
	}{
		"without a placement only the targets count": {nil, 1, []string{"name=target"}},
		"no affinity":                     {&policyv1alpha1.Placement{}, 1, []string{"any"}},
		"an empty affinity":               {&policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{}}, 1, []string{"any"}},
		"names":                           {&policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "target")}, 1, []string{"name=a", "name=target"}},
		"names that are not excluded":     {&policyv1alpha1.Placement{ClusterAffinity: excluding}, 1, []string{"name=a", "name=target"}},
		"only excluded names":             {&policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"b"}}}, 1, []string{"any"}},
		"one of the labels is sufficient": {&policyv1alpha1.Placement{ClusterAffinity: selectingLabels(map[string]string{"tier": "1", "env": "prod"})}, 1, []string{"label:env=prod", "name=target"}},
		"a label that must exist":         {&policyv1alpha1.Placement{ClusterAffinity: selectingLabels(nil, metav1.LabelSelectorRequirement{Key: "tier", Operator: "Exists"})}, 1, []string{"label:tier", "name=target"}},
		"a label that must not exist":     {&policyv1alpha1.Placement{ClusterAffinity: selectingLabels(nil, metav1.LabelSelectorRequirement{Key: "tier", Operator: "DoesNotExist"})}, 1, []string{"any"}},
		"a value is preferred to the existence of a label": {&policyv1alpha1.Placement{ClusterAffinity: selectingLabels(map[string]string{"tier": "1"}, metav1.LabelSelectorRequirement{Key: "env", Operator: "Exists"})}, 1, []string{"label:tier=1", "name=target"}},
		"the term with the fewest values":                  {&policyv1alpha1.Placement{ClusterAffinity: labelsAndFields}, 1, []string{"field:region=eu", "name=target"}},
		"the values of zones":                              {&policyv1alpha1.Placement{ClusterAffinity: selectingFields(corev1.NodeSelectorRequirement{Key: "zone", Operator: "In", Values: []string{"z1", "z2"}})}, 1, []string{"field:zone=z1", "field:zone=z2", "name=target"}},
		"a field that must have a value":                   {&policyv1alpha1.Placement{ClusterAffinity: selectingFields(corev1.NodeSelectorRequirement{Key: "provider", Operator: "Exists"})}, 1, []string{"field:provider", "name=target"}},
		"a value that is not allowed":                      {&policyv1alpha1.Placement{ClusterAffinity: selectingFields(corev1.NodeSelectorRequirement{Key: "provider", Operator: "NotIn", Values: []string{"x"}})}, 1, []string{"any"}},
		"the affinity group in use":                        {groups, 1, []string{"name=b", "name=target"}},
		"affinity groups of another generation":            {groups, 0, []string{"any"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			b.Spec.Placement, b.Spec.Clusters = test.placement, targets{target("target", 1)}
			b.Status.SchedulerObservedAffinityName, b.Status.SchedulerObservedGeneration = "second", test.observed
			if diff := cmp.Diff(test.want, BindingKeys(b, &b.Spec, &b.Status)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// drawStrings draws up to three of the values. Often it draws none.
func drawStrings(t *rapid.T, what string, values ...string) []string {
	if rapid.Bool().Draw(t, "no "+what) {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, min(3, len(values)), rapid.ID).Draw(t, what)
}

func drawLabels(t *rapid.T, what string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"tier", "env", "example.io/team"}), rapid.SampledFrom([]string{"", "1", "2"}), 0, 3).Draw(t, what)
}

func drawAffinity(t *rapid.T) *policyv1alpha1.ClusterAffinity {
	if rapid.IntRange(0, 4).Draw(t, "no affinity") == 0 {
		return nil
	}
	affinity := &policyv1alpha1.ClusterAffinity{ExcludeClusters: drawStrings(t, "excluded", "a", "b", "c")}
	criteria := rapid.SampledFrom([]string{"names", "labels", "fields", "labels and fields", "all"}).Draw(t, "criteria")
	if criteria == "names" || criteria == "all" {
		affinity.ClusterNames = drawStrings(t, "names", "a", "b", "c")
	}
	if strings.Contains(criteria, "labels") || criteria == "all" {
		affinity.LabelSelector = &metav1.LabelSelector{}
		if rapid.Bool().Draw(t, "has match labels") {
			affinity.LabelSelector.MatchLabels = drawLabels(t, "match labels")
		}
		for range rapid.IntRange(0, 2).Draw(t, "label expressions") {
			affinity.LabelSelector.MatchExpressions = append(affinity.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key:      rapid.SampledFrom([]string{"tier", "env", "not a label"}).Draw(t, "label"),
				Operator: metav1.LabelSelectorOperator(rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist", "Unknown"}).Draw(t, "label operator")),
				Values:   drawStrings(t, "label values", "", "1", "2"),
			})
		}
	}
	if strings.Contains(criteria, "fields") || criteria == "all" {
		affinity.FieldSelector = &policyv1alpha1.FieldSelector{}
		for range rapid.IntRange(0, 2).Draw(t, "field expressions") {
			affinity.FieldSelector.MatchExpressions = append(affinity.FieldSelector.MatchExpressions, corev1.NodeSelectorRequirement{
				Key:      rapid.SampledFrom([]string{"provider", "region", "zone", "other"}).Draw(t, "field"),
				Operator: corev1.NodeSelectorOperator(rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}).Draw(t, "field operator")),
				Values:   drawStrings(t, "field values", "", "1", "2"),
			})
		}
	}
	return affinity
}

func drawGroup(t *rapid.T) policyv1alpha1.ClusterAffinityTerm {
	group := policyv1alpha1.ClusterAffinityTerm{AffinityName: rapid.SampledFrom([]string{"first", "second"}).Draw(t, "group")}
	if affinity := drawAffinity(t); affinity != nil {
		group.ClusterAffinity = *affinity
	}
	for range rapid.IntRange(0, 1).Draw(t, "overflow groups") {
		if affinity := drawAffinity(t); affinity != nil {
			group.OverflowAffinities = append(group.OverflowAffinities, policyv1alpha1.OverflowAffinityTerm{ClusterAffinity: *affinity})
		}
	}
	return group
}

func drawBinding(t *rapid.T) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	for _, name := range drawStrings(t, "targets", "a", "b", "c") {
		bound.Spec.Clusters = append(bound.Spec.Clusters, target(name, 1))
	}
	bound.Status.SchedulerObservedGeneration = rapid.Int64Range(0, 1).Draw(t, "observed")
	bound.Status.SchedulerObservedAffinityName = rapid.SampledFrom([]string{"", "first", "second"}).Draw(t, "group in use")
	if rapid.Bool().Draw(t, "failed") {
		bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse}}
	}
	if rapid.Bool().Draw(t, "no placement") {
		return bound
	}
	bound.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: drawAffinity(t)}
	for range rapid.IntRange(0, 2).Draw(t, "groups") {
		bound.Spec.Placement.ClusterAffinities = append(bound.Spec.Placement.ClusterAffinities, drawGroup(t))
	}
	return bound
}

func drawCluster(t *rapid.T) *clusterv1alpha1.Cluster {
	fields := rapid.SampledFrom([]string{"", "1", "2"})
	return member(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "cluster"), labelled(drawLabels(t, "labels")),
		ofProvider(fields.Draw(t, "provider")), inRegion(fields.Draw(t, "region")), inZones(drawStrings(t, "zones", "", "1", "2")...))
}

func TestIndexFindsEveryAffectedBinding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := rapid.SliceOfN(rapid.Custom(drawCluster), 12, 12).Draw(t, "clusters")
		for _, bound := range rapid.SliceOfN(rapid.Custom(drawBinding), 40, 40).Draw(t, "bindings") {
			bindingKeys := BindingKeys(bound, &bound.Spec, &bound.Status)
			for _, cluster := range clusters {
				clusterKeys := clusteraffinity.ClusterKeys(cluster)
				isFound := slices.ContainsFunc(bindingKeys, func(key string) bool { return slices.Contains(clusterKeys, key) })
				if IsAffectedByCluster(cluster, bound, &bound.Spec, &bound.Status) && !isFound {
					t.Fatalf("the cluster affects a binding with the keys %q, and looks up only %q", bindingKeys, clusterKeys)
				}
			}
		}
	})
}
