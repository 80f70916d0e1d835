// Package override applies override policies to a cluster's manifest.
//
// ClusterOverridePolicies are applied first, and then the OverridePolicies in the template's namespace.
// The policies of each kind are applied in ascending order of specificity, and then by name, so that
// the most specific policy takes precedence. Each rule is applied to the result of the previous one.
//
// Invariants:
//   - The arguments are not modified.
//   - The result does not depend on the order in which policies are passed.
//   - Either all matching rules are applied, or an error is returned.
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

// Options determines what override policies may change besides an object's content.
type Options struct {
	// AllowIdentityChange lets ClusterOverridePolicies change a manifest's group, kind, namespace and
	// name. It is true if the feature gate OverrideIdentity is enabled.
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

// Apply returns the cluster's manifest, with all matching overrides applied, and a record of the applied
// rules.
//
// Of namespacePolicies, only those in the manifest's original namespace are applied, and none to a
// cluster-scoped manifest. A policy that is being deleted is still applied. If a rule cannot be applied,
// or changes more than its policy may change (see restrictions), Apply returns a *RuleError.
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
	inNamespace := onlyInNamespace(namespacePolicies, manifest.GetNamespace())
	namespaceRules, more, err := applyPolicies(result, cluster, inNamespace, namespaceRestrictions(result))
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

// applyPolicies applies the policies of a scope to the manifest, in place. Their selectors are compared
// with the manifest as it is before the first of these policies. It returns the applied rules, without
// entries that had no effect, and a message about each of these entries.
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
	return applied, ineffective, limits.validateResult(manifest)
}

// matchingPolicies returns the policies that select the manifest, the least specific first.
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

// Specificity returns how specifically the policy selects the manifest, or policy.MatchNone if it does
// not. More specific policies are applied later. A policy without selectors selects every manifest,
// with the lowest specificity.
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
