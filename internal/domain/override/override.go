// Package override answers: what is different about a manifest in one cluster?
//
// ClusterOverridePolicies come first, then the OverridePolicies of the
// template's namespace; within a group the less specific and then the smaller
// name comes first, so that the more specific and the later name has the last
// word. Every rule works on what the rules before it made.
//
// Invariants: inputs are never changed; the result depends on nothing but the
// inputs, in particular not on the order in which policies are given; either
// every matching rule was applied or the result is an error.
package override

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
)

// Object is an OverridePolicy or a ClusterOverridePolicy.
type Object interface {
	metav1.Object
	runtime.Object
	// OverrideSpec is the live spec, not a copy.
	OverrideSpec() *policyv1alpha1.OverrideSpec
}

var (
	_ Object = (*policyv1alpha1.OverridePolicy)(nil)
	_ Object = (*policyv1alpha1.ClusterOverridePolicy)(nil)
)

// Allowed is what policies may change beyond what an object says.
type Allowed struct {
	// Identity lets ClusterOverridePolicies make another object of the manifest: change
	// its group, kind, namespace or name. It is the feature gate OverrideIdentity.
	Identity bool
}

// Apply is Allowed.Apply with nothing allowed.
func Apply(
	manifest *unstructured.Unstructured,
	cluster *clusterv1alpha1.Cluster,
	clusterPolicies, namespacePolicies []Object,
) (*unstructured.Unstructured, Applied, error) {
	return Allowed{}.Apply(manifest, cluster, clusterPolicies, namespacePolicies)
}

// Apply makes the version of manifest that belongs in cluster.
//
// Of namespacePolicies those in the manifest's namespace count, as it was before
// any override; a cluster-scoped manifest has none. A policy in deletion still
// counts, until it is gone. The first rule that does not fit the manifest ends
// the work with a *RuleError, and so does a rule that changes more than its policy
// may: see bounds.
func (a Allowed) Apply(
	manifest *unstructured.Unstructured,
	cluster *clusterv1alpha1.Cluster,
	clusterPolicies, namespacePolicies []Object,
) (*unstructured.Unstructured, Applied, error) {
	result := manifest.DeepCopy()
	var applied Applied
	clusterRules, err := applyGroup(result, cluster, clusterPolicies, clusterBounds(manifest, a))
	if err != nil {
		return nil, Applied{}, err
	}
	namespaceRules, err := applyGroup(result, cluster, inNamespace(namespacePolicies, manifest.GetNamespace()), namespaceBounds(result))
	if err != nil {
		return nil, Applied{}, err
	}
	if applied.Cluster, err = record(clusterRules); err != nil {
		return nil, Applied{}, err
	}
	if applied.Namespaced, err = record(namespaceRules); err != nil {
		return nil, Applied{}, err
	}
	return result, applied, nil
}

// applyGroup applies the policies of one scope to manifest, in place. All of them
// are selected by what the manifest is before the first of them.
func applyGroup(manifest *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies []Object, within *bounds) ([]appliedRule, error) {
	var applied []appliedRule
	wasSound := sound(manifest) == nil
	for _, matching := range match(manifest, policies) {
		for _, rule := range rulesOf(matching) {
			if rule.empty() || !rule.covers(cluster) {
				continue
			}
			if err := rule.apply(manifest, within); err != nil {
				return nil, err
			}
			if err := sound(manifest); err != nil && wasSound {
				return nil, rule.spoiled(err)
			}
			applied = append(applied, appliedRule{PolicyName: matching.GetName(), Overriders: *rule.overriders})
		}
	}
	return applied, within.check(manifest)
}

// match selects the policies that concern manifest, least specific first.
func match(manifest *unstructured.Unstructured, policies []Object) []Object {
	type ranked struct {
		Object
		priority policy.Priority
	}
	var matching []ranked
	for _, candidate := range policies {
		if priority := Specificity(candidate, manifest); priority != policy.MatchNone {
			matching = append(matching, ranked{candidate, priority})
		}
	}
	slices.SortStableFunc(matching, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.GetName(), b.GetName()))
	})
	objects := make([]Object, 0, len(matching))
	for _, m := range matching {
		objects = append(objects, m.Object)
	}
	return objects
}

// Specificity is how closely the policy's selectors describe the manifest; the
// higher is applied later, policy.MatchNone does not concern it. A policy without selectors
// concerns everything, at the lowest rank.
func Specificity(candidate Object, manifest *unstructured.Unstructured) policy.Priority {
	selectors := candidate.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return policy.MatchAll
	}
	return policy.ImplicitPriority(selectors, manifest)
}

func inNamespace(policies []Object, namespace string) []Object {
	if namespace == "" {
		return nil
	}
	var inside []Object
	for _, candidate := range policies {
		if candidate.GetNamespace() == namespace {
			inside = append(inside, candidate)
		}
	}
	return inside
}

// covers tells whether the rule is meant for the cluster.
func (r rule) covers(cluster *clusterv1alpha1.Cluster) bool {
	return r.target == nil || placement.Matches(cluster, r.target)
}
