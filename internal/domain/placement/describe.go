package placement

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// describeAffinityInUse describes, for an error message, the affinity or affinity group that is being
// tried. It returns an empty string if every cluster is selected.
func (t *task) describeAffinityInUse() string {
	if t.affinityGroup != nil {
		return fmt.Sprintf("cluster affinity group %q", t.affinityGroup.AffinityName)
	}
	return describeAffinity(t.spec.Placement.ClusterAffinity)
}

// DescribeOtherGroups returns a sentence with the failures of all affinity groups except the first one
// in failed.
func DescribeOtherGroups(failed []GroupFailure) string {
	var parts []string
	for _, group := range failed[1:] {
		parts = append(parts, fmt.Sprintf("%q (%s)", group.Name, strings.TrimSuffix(group.Err.Error(), ".")))
	}
	return "The template does not fit the other affinity groups either: " + joinBounded(parts) + "."
}

// describeAffinity describes the affinity's criteria. It returns an empty string for a nil affinity,
// which selects every cluster.
func describeAffinity(affinity *policyv1alpha1.ClusterAffinity) string {
	if affinity == nil {
		return ""
	}
	var parts []string
	if len(affinity.ClusterNames) > 0 {
		parts = append(parts, "clusterNames "+JoinFirstNames(affinity.ClusterNames))
	}
	if len(affinity.ExcludeClusters) > 0 {
		parts = append(parts, "exclude "+JoinFirstNames(affinity.ExcludeClusters))
	}
	if affinity.LabelSelector != nil {
		parts = append(parts, "labelSelector "+metav1.FormatLabelSelector(affinity.LabelSelector))
	}
	if affinity.FieldSelector != nil {
		for _, expression := range affinity.FieldSelector.MatchExpressions {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", expression.Key, expression.Operator, JoinFirstNames(expression.Values))))
		}
	}
	if len(parts) == 0 {
		return "cluster affinity"
	}
	return fmt.Sprintf("cluster affinity (%s)", joinBounded(parts))
}

// JoinFirstNames joins the first maxNamedClusters names, and appends the number of the others.
func JoinFirstNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamedClusters)], ", ")
	if more := len(names) - maxNamedClusters; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
