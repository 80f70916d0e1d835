// Package clusteraffinity selects the clusters that match the cluster affinities of a placement.
// It also provides the index keys with which the affinities that may select a given cluster are
// found.
//
// Every function is pure and modifies no argument.
package clusteraffinity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Matches reports whether the affinity selects the cluster. The cluster must not be excluded,
// must be listed in clusterNames if that list is not empty, and must match both selectors. A nil
// affinity selects every cluster. A selector that cannot be parsed selects no cluster.
//
// To test many clusters against one affinity, call Compile once instead.
func Matches(cluster *clusterv1alpha1.Cluster, affinity *policyv1alpha1.ClusterAffinity) bool {
	matcher := Compile(affinity)
	return matcher.Matches(cluster)
}

// Matcher is an affinity with parsed selectors. It is immutable and safe for concurrent use. The
// zero value selects every cluster.
type Matcher struct {
	invalid  bool
	affinity *policyv1alpha1.ClusterAffinity
	labels   labels.Selector
	fields   []fieldMatcher
}

// fieldMatcher is one expression of a field selector.
type fieldMatcher func(*clusterv1alpha1.ClusterSpec) bool

// Compile parses the selectors of the affinity. The Matcher keeps a reference to the affinity, so
// the affinity must not be changed afterwards.
func Compile(affinity *policyv1alpha1.ClusterAffinity) Matcher {
	if affinity == nil {
		return Matcher{}
	}
	matcher := Matcher{affinity: affinity}
	if affinity.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(affinity.LabelSelector)
		if err != nil {
			return Matcher{affinity: affinity, invalid: true}
		}
		matcher.labels = selector
	}
	if affinity.FieldSelector != nil {
		for _, expression := range affinity.FieldSelector.MatchExpressions {
			matcher.fields = append(matcher.fields, compileField(expression))
		}
	}
	return matcher
}

// Matches reports whether the compiled affinity selects the cluster.
func (m *Matcher) Matches(cluster *clusterv1alpha1.Cluster) bool {
	switch {
	case m.affinity == nil:
		return true
	case m.invalid,
		slices.Contains(m.affinity.ExcludeClusters, cluster.Name),
		len(m.affinity.ClusterNames) > 0 && !slices.Contains(m.affinity.ClusterNames, cluster.Name),
		m.labels != nil && !m.labels.Matches(labels.Set(cluster.Labels)):
		return false
	}
	for _, matches := range m.fields {
		if !matches(&cluster.Spec) {
			return false
		}
	}
	return true
}

func matchesNoCluster(*clusterv1alpha1.ClusterSpec) bool { return false }

func compileField(expression corev1.NodeSelectorRequirement) fieldMatcher {
	switch expression.Key {
	case policyv1alpha1.ClusterFieldZone:
		return compileZones(expression)
	case policyv1alpha1.ClusterFieldProvider, policyv1alpha1.ClusterFieldRegion:
		return compileProviderOrRegion(expression)
	default:
		return matchesNoCluster
	}
}

// compileZones compiles an expression that tests the list of zones of a cluster as a set.
func compileZones(expression corev1.NodeSelectorRequirement) fieldMatcher {
	overlaps := func(spec *clusterv1alpha1.ClusterSpec) bool {
		return slices.ContainsFunc(spec.Zones, func(zone string) bool {
			return slices.Contains(expression.Values, zone)
		})
	}
	switch expression.Operator {
	case corev1.NodeSelectorOpIn:
		return overlaps
	case corev1.NodeSelectorOpNotIn:
		return func(spec *clusterv1alpha1.ClusterSpec) bool { return !overlaps(spec) }
	case corev1.NodeSelectorOpExists:
		return func(spec *clusterv1alpha1.ClusterSpec) bool { return len(spec.Zones) > 0 }
	case corev1.NodeSelectorOpDoesNotExist:
		return func(spec *clusterv1alpha1.ClusterSpec) bool { return len(spec.Zones) == 0 }
	default:
		return matchesNoCluster
	}
}

// selectionOperator translates the operators of node selectors to the operators of label
// selectors.
func selectionOperator(operator corev1.NodeSelectorOperator) selection.Operator {
	switch operator {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	default:
		return selection.Operator(operator) // rejected by labels.NewRequirement
	}
}

// compileProviderOrRegion compiles an expression that tests provider or region in the same way as a
// node selector tests a label. An empty value counts as a missing label.
func compileProviderOrRegion(expression corev1.NodeSelectorRequirement) fieldMatcher {
	requirement, err := labels.NewRequirement(expression.Key, selectionOperator(expression.Operator), expression.Values)
	if err != nil {
		return matchesNoCluster
	}
	return func(spec *clusterv1alpha1.ClusterSpec) bool {
		value := spec.Provider
		if expression.Key == policyv1alpha1.ClusterFieldRegion {
			value = spec.Region
		}
		return requirement.Matches(fieldLabel{key: expression.Key, value: value})
	}
}

// fieldLabel presents one field as labels.Labels. This avoids the allocation of a map for each
// cluster.
type fieldLabel struct{ key, value string }

func (f fieldLabel) Has(key string) bool { return key == f.key && f.value != "" }

func (f fieldLabel) Get(key string) string {
	if !f.Has(key) {
		return ""
	}
	return f.value
}

func (f fieldLabel) Lookup(key string) (string, bool) { return f.Get(key), f.Has(key) }

var _ labels.Labels = fieldLabel{}
