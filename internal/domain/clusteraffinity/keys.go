package clusteraffinity

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// AnyKey is the index key of entries that may depend on every cluster.
const AnyKey = "any"

// NameKey returns the index key of entries that depend on the cluster with that name.
func NameKey(cluster string) string { return "name=" + cluster }

func labelKey(key, value string) string   { return "label:" + key + "=" + value }
func labelExistsKey(key string) string    { return "label:" + key }
func fieldKey(field, value string) string { return "field:" + field + "=" + value }
func fieldExistsKey(field string) string  { return "field:" + field }

// ClusterKeys returns the index keys of all entries that one of the given states of a cluster may
// affect; see Keys.
func ClusterKeys(states ...*clusterv1alpha1.Cluster) []string {
	keys := []string{AnyKey}
	for _, cluster := range states {
		keys = append(keys, NameKey(cluster.Name))
		for key, value := range cluster.Labels {
			keys = append(keys, labelExistsKey(key), labelKey(key, value))
		}
		for _, zone := range cluster.Spec.Zones {
			keys = append(keys, fieldExistsKey(policyv1alpha1.ClusterFieldZone), fieldKey(policyv1alpha1.ClusterFieldZone, zone))
		}
		// An empty provider or region counts as missing, so no selector requires it.
		if provider := cluster.Spec.Provider; provider != "" {
			keys = append(keys, fieldExistsKey(policyv1alpha1.ClusterFieldProvider), fieldKey(policyv1alpha1.ClusterFieldProvider, provider))
		}
		if region := cluster.Spec.Region; region != "" {
			keys = append(keys, fieldExistsKey(policyv1alpha1.ClusterFieldRegion), fieldKey(policyv1alpha1.ClusterFieldRegion, region))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// IndexKeys returns the keys under which an index holds an affinity. If the affinity selects a cluster,
// at least one of the keys is among the ClusterKeys of that cluster. A common key does not prove
// that the affinity selects the cluster.
func IndexKeys(affinity *policyv1alpha1.ClusterAffinity) []string {
	if affinity == nil {
		return []string{AnyKey}
	}
	if len(affinity.ClusterNames) > 0 {
		var keys []string
		for _, name := range affinity.ClusterNames {
			if !slices.Contains(affinity.ExcludeClusters, name) {
				keys = append(keys, NameKey(name))
			}
		}
		return keys
	}
	requirements := append(labelRequirements(affinity.LabelSelector), fieldRequirements(affinity.FieldSelector)...)
	if len(requirements) == 0 {
		return []string{AnyKey}
	}
	return slices.MinFunc(requirements, compareSelectivity).keys
}

// requirement is one term of a selector. A cluster that matches the term has at least one of the
// keys.
type requirement struct {
	keys []string
	// testsValue reports whether the keys contain values. Otherwise the keys test only whether a
	// value exists.
	testsValue bool
}

// compareSelectivity orders requirements by the number of clusters that they probably select.
func compareSelectivity(a, b requirement) int {
	if a.testsValue != b.testsValue {
		if a.testsValue {
			return -1
		}
		return 1
	}
	return cmp.Compare(len(a.keys), len(b.keys))
}

// labelRequirements returns the terms of a label selector that require a label. It omits terms that
// require the absence of a label or value, because such terms have no keys.
func labelRequirements(selector *metav1.LabelSelector) []requirement {
	if selector == nil {
		return nil
	}
	var found []requirement
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		found = append(found, requirement{keys: []string{labelKey(key, selector.MatchLabels[key])}, testsValue: true})
	}
	for _, expression := range selector.MatchExpressions {
		switch expression.Operator {
		case metav1.LabelSelectorOpIn:
			found = append(found, valueRequirement(labelKey, expression.Key, expression.Values))
		case metav1.LabelSelectorOpExists:
			found = append(found, requirement{keys: []string{labelExistsKey(expression.Key)}})
		}
	}
	return found
}

// fieldRequirements returns the terms of a field selector that require a value. It omits the same
// terms as labelRequirements.
func fieldRequirements(selector *policyv1alpha1.FieldSelector) []requirement {
	if selector == nil {
		return nil
	}
	var found []requirement
	for _, expression := range selector.MatchExpressions {
		switch expression.Operator {
		case corev1.NodeSelectorOpIn:
			found = append(found, valueRequirement(fieldKey, expression.Key, expression.Values))
		case corev1.NodeSelectorOpExists:
			found = append(found, requirement{keys: []string{fieldExistsKey(expression.Key)}})
		}
	}
	return found
}

// valueRequirement returns a requirement that the key has one of the values.
func valueRequirement(keyOf func(key, value string) string, key string, values []string) requirement {
	keys := make([]string, len(values))
	for i, value := range values {
		keys[i] = keyOf(key, value)
	}
	return requirement{keys: keys, testsValue: true}
}
