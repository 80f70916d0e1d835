// Package override changes a manifest for one cluster according to override policies.
//
// ClusterOverridePolicies are applied first, then the OverridePolicies in the namespace of the
// template. The policies of each kind are sorted by specificity and then by name. The more specific
// policy and the later name are applied last and take precedence. Every rule is applied to the
// result of the rules before it.
//
// Invariants: inputs are never changed; the result depends only on the inputs and not on the order
// of the policies; either every matching rule was applied or the result is an error.
package override

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/policy"
)

// Object is an OverridePolicy or a ClusterOverridePolicy.
type Object interface {
	metav1.Object
	runtime.Object
	// OverrideSpec returns the spec itself, not a copy.
	OverrideSpec() *policyv1alpha1.OverrideSpec
}

var (
	_ Object = (*policyv1alpha1.OverridePolicy)(nil)
	_ Object = (*policyv1alpha1.ClusterOverridePolicy)(nil)
)

// Options holds the changes that override policies may make in addition to changes of the content
// of an object.
type Options struct {
	// AllowIdentityChange lets ClusterOverridePolicies change the identity of the manifest: its
	// group, kind, namespace or name. It is true if the feature gate OverrideIdentity is enabled.
	AllowIdentityChange bool
}

// Apply calls Options.Apply with the zero value of Options.
func Apply(
	manifest *unstructured.Unstructured,
	cluster *clusterv1alpha1.Cluster,
	clusterPolicies, namespacePolicies []Object,
) (*unstructured.Unstructured, AppliedRecord, error) {
	return Options{}.Apply(manifest, cluster, clusterPolicies, namespacePolicies)
}

// Apply returns the manifest for the cluster, with all overrides applied.
//
// Only the namespacePolicies in the original namespace of the manifest are applied. No
// namespacePolicies are applied to a cluster-scoped manifest. A policy that is being deleted is
// applied until it is removed. If a rule cannot be applied, Apply stops and returns a *RuleError.
// It also returns an error if a rule changes more than its policy may change; see restrictions.
func (o Options) Apply(
	manifest *unstructured.Unstructured,
	cluster *clusterv1alpha1.Cluster,
	clusterPolicies, namespacePolicies []Object,
) (*unstructured.Unstructured, AppliedRecord, error) {
	result := manifest.DeepCopy()
	var applied AppliedRecord
	clusterRules, ineffective, err := applyPolicies(result, cluster, clusterPolicies, clusterRestrictions(manifest, o))
	if err != nil {
		return nil, AppliedRecord{}, err
	}
	namespaceRules, more, err := applyPolicies(result, cluster, onlyInNamespace(namespacePolicies, manifest.GetNamespace()), namespaceRestrictions(result))
	if err != nil {
		return nil, AppliedRecord{}, err
	}
	applied.WithoutEffect = conditions.LimitMessage(strings.Join(append(ineffective, more...), "\n"))
	if applied.Cluster, err = encodeRecord(clusterRules); err != nil {
		return nil, AppliedRecord{}, err
	}
	if applied.Namespaced, err = encodeRecord(namespaceRules); err != nil {
		return nil, AppliedRecord{}, err
	}
	return result, applied, nil
}

// applyPolicies applies the policies of one scope to manifest, in place. Selectors are compared
// with the manifest in its state before the first policy of the scope. It returns the applied rules
// without the entries that had no effect, and messages about these entries.
func applyPolicies(
	manifest *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies []Object, limits *restrictions,
) (applied []appliedRule, ineffective []string, err error) {
	wasValid := validateObject(manifest) == nil
	for _, matching := range matchingPolicies(manifest, policies) {
		for _, rule := range rulesOf(matching) {
			if !rule.appliesTo(cluster) {
				continue
			}
			effective, messages, err := rule.apply(manifest, limits)
			if err != nil {
				return nil, nil, err
			}
			if err := validateObject(manifest); err != nil && wasValid {
				return nil, nil, rule.invalidResultError(err)
			}
			ineffective = append(ineffective, messages...)
			if !isEmpty(&effective) {
				applied = append(applied, appliedRule{PolicyName: matching.GetName(), Overriders: effective})
			}
		}
	}
	return applied, ineffective, limits.check(manifest)
}

// matchingPolicies returns the policies that select manifest, least specific first.
func matchingPolicies(manifest *unstructured.Unstructured, policies []Object) []Object {
	type rankedPolicy struct {
		Object
		priority policy.MatchPriority
	}
	var matching []rankedPolicy
	for _, candidate := range policies {
		if priority := Specificity(candidate, manifest); priority != policy.MatchNone {
			matching = append(matching, rankedPolicy{candidate, priority})
		}
	}
	slices.SortStableFunc(matching, func(a, b rankedPolicy) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.GetName(), b.GetName()))
	})
	objects := make([]Object, 0, len(matching))
	for _, m := range matching {
		objects = append(objects, m.Object)
	}
	return objects
}

// Specificity returns how specifically the policy selects the manifest. A policy with a higher
// specificity is applied later. If the result is policy.MatchNone, the policy is not applied. A
// policy without selectors selects every manifest with the lowest specificity.
func Specificity(candidate Object, manifest *unstructured.Unstructured) policy.MatchPriority {
	selectors := candidate.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return policy.MatchAll
	}
	return policy.ImplicitPriority(selectors, manifest)
}

func onlyInNamespace(policies []Object, namespace string) []Object {
	if namespace == "" {
		return nil
	}
	var result []Object
	for _, candidate := range policies {
		if candidate.GetNamespace() == namespace {
			result = append(result, candidate)
		}
	}
	return result
}

// TargetsCluster reports whether any rule of the policy targets the cluster.
func TargetsCluster(source Object, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(rulesOf(source), func(r rule) bool { return r.appliesTo(cluster) })
}

// appliesTo reports whether the rule targets the cluster.
func (r rule) appliesTo(cluster *clusterv1alpha1.Cluster) bool {
	return r.target == nil || clusteraffinity.Matches(cluster, r.target)
}
