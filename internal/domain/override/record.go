package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// AppliedRecord is the record of the applied rules, in the format of the annotations of a Work.
// Each field is a JSON list with one entry per applied rule, sorted by policy name. A list is empty
// if no rule of its scope was applied.
type AppliedRecord struct {
	// Cluster lists the rules of ClusterOverridePolicies.
	Cluster string
	// Namespaced lists the rules of OverridePolicies.
	Namespaced string
	// WithoutEffect names, one in each line, the entries of matching rules that had no effect, and
	// says why.
	WithoutEffect string
}

// appliedRule is an entry of the record. Its JSON form must not change, because users and tools
// read it.
type appliedRule struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
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
