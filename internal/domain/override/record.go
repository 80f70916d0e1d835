package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// AppliedRecord records the applied rules, in the format of the Work's annotations. Cluster and
// Namespaced are JSON lists with an entry for each applied rule, sorted by policy name, or empty if no
// rule was applied.
type AppliedRecord struct {
	// Cluster lists the rules of ClusterOverridePolicies.
	Cluster string
	// Namespaced lists the rules of OverridePolicies.
	Namespaced string
	// WithoutEffect has a line for each entry that had no effect, with the reason.
	WithoutEffect string
}

// appliedRule is an entry of an AppliedRecord. Its JSON format must not change, because users and tools
// read it.
type appliedRule struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// RecordOf returns the record in the Work's annotations.
func RecordOf(karmadaWork metav1.Object) AppliedRecord {
	annotations := karmadaWork.GetAnnotations()
	return AppliedRecord{
		Cluster: annotations[policyv1alpha1.AppliedClusterOverrides], Namespaced: annotations[policyv1alpha1.AppliedOverrides],
		WithoutEffect: annotations[policyv1alpha1.IneffectiveOverrides],
	}
}

// EffectOf returns whether a rule of the policy was applied, and the messages about the policy's entries
// that had no effect. A record that cannot be decoded counts as empty.
func (r AppliedRecord) EffectOf(source Object) (isApplied bool, withoutEffect []string) {
	record := r.Namespaced
	if source.GetNamespace() == "" {
		record = r.Cluster
	}
	var rules []appliedRule
	if record != "" && json.Unmarshal([]byte(record), &rules) == nil {
		isApplied = slices.ContainsFunc(rules, func(rule appliedRule) bool { return rule.PolicyName == source.GetName() })
	}
	for line := range strings.SplitSeq(r.WithoutEffect, "\n") {
		if message, isOwn := strings.CutPrefix(line, displayName(source)+", "); isOwn {
			withoutEffect = append(withoutEffect, message)
		}
	}
	return isApplied, withoutEffect
}

func encodeRecord(rules []appliedRule) (string, error) {
	if len(rules) == 0 {
		return "", nil
	}
	slices.SortStableFunc(rules, func(a, b appliedRule) int { return cmp.Compare(a.PolicyName, b.PolicyName) })
	text, err := json.Marshal(rules)
	if err != nil {
		return "", fmt.Errorf("recording the applied overrides: %w", err)
	}
	return string(text), nil
}
