package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Applied is the record of what was applied, ready to be annotations of a Work:
// JSON lists with one entry per applied rule, by policy name. Each is empty when
// no rule of its scope was applied.
type Applied struct {
	// Cluster lists the rules of ClusterOverridePolicies.
	Cluster string
	// Namespaced lists the rules of OverridePolicies.
	Namespaced string
}

// appliedRule is an entry of the record. Its JSON form is read by people and
// tools and must not change.
type appliedRule struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

func record(rules []appliedRule) (string, error) {
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
