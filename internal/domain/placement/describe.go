package placement

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// affinityName is what a message calls the affinities being tried; empty if there are
// none. It is worked out for a failure only.
func (t *task) affinityName() string {
	if t.group != nil {
		return fmt.Sprintf("cluster affinity group %q", t.group.AffinityName)
	}
	return describeAffinity(t.spec.Placement.ClusterAffinity)
}

// describeAffinity words an affinity by what it asks for; empty for nil, which
// selects every cluster.
func describeAffinity(affinity *policyv1alpha1.ClusterAffinity) string {
	if affinity == nil {
		return ""
	}
	var parts []string
	if len(affinity.ClusterNames) > 0 {
		parts = append(parts, "clusterNames "+namedFirst(affinity.ClusterNames))
	}
	if len(affinity.ExcludeClusters) > 0 {
		parts = append(parts, "exclude "+namedFirst(affinity.ExcludeClusters))
	}
	if affinity.LabelSelector != nil {
		parts = append(parts, "labelSelector "+metav1.FormatLabelSelector(affinity.LabelSelector))
	}
	if affinity.FieldSelector != nil {
		for _, expression := range affinity.FieldSelector.MatchExpressions {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", expression.Key, expression.Operator, namedFirst(expression.Values))))
		}
	}
	if len(parts) == 0 {
		return "cluster affinity"
	}
	return fmt.Sprintf("cluster affinity (%s)", listed(parts))
}

// namedFirst lists the first few names and counts the others.
func namedFirst(names []string) string {
	text := strings.Join(names[:min(len(names), namedUnknown)], ", ")
	if more := len(names) - namedUnknown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
