package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
)

// checkOverridePolicies reports which override policies change the template in which cluster, and
// which of them have no effect or nearly apply. An override policy that has no effect is no failure
// of the chain, because the object is delivered.
func checkOverridePolicies(f *Facts) []Link {
	template := f.Template.Value
	if template == nil {
		return nil
	}
	if f.Overrides.Err != nil {
		return []Link{unreadable(Link{Stage: StageOverride}, "the override policies", f.Overrides.Err)}
	}
	policies := slices.SortedFunc(slices.Values(f.Overrides.Value), func(a, b override.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	var links []Link
	nearMisses := 0
	for _, each := range policies {
		if override.Specificity(each, template) != policy.MatchNone {
			links = append(links, checkOverridePolicy(f, each)...)
			continue
		}
		differences := policy.SelectorDifferences(template, each.OverrideSpec().ResourceSelectors, f.serves)
		if len(differences) > 0 && nearMisses < maxNearMisses {
			nearMisses++
			links = append(links, Link{
				Stage: StageOverride, Verdict: NotApplicable, Reason: ReasonOverrideNearlySelects,
				Message: fmt.Sprintf("%s does not select the object, but nearly does: %s", describeOverride(each), strings.Join(differences, "; ")),
			})
		}
	}
	return links
}

// checkOverridePolicy describes the effect of a policy that selects the template, by cluster.
func checkOverridePolicy(f *Facts, of override.Object) []Link {
	var links []Link
	isTargeting := len(binding.ExpectedClusters(f.Binding.Value.BindingSpec())) == 0
	for _, each := range f.clusterFacts() {
		if !each.isExpected || each.member == nil || !override.TargetsCluster(of, each.member) {
			continue
		}
		isTargeting = true
		// The record of an outdated Work says nothing about the policy, and the stage work reports
		// why there is no current Work.
		if each.work != nil && each.isRendered {
			links = append(links, each.describeEffect(of)...)
		}
	}
	if !isTargeting && f.Clusters.Err == nil {
		return []Link{{
			Stage: StageOverride, Verdict: NotApplicable, Reason: ReasonOverrideElsewhere,
			Message: describeOverride(of) + " selects the object, but its targetCluster selects none of the clusters of the object",
		}}
	}
	return links
}

// describeEffect describes the effect of a policy on the manifest of the cluster.
func (c *clusterFacts) describeEffect(of override.Object) []Link {
	isApplied, withoutEffect := override.RecordOf(c.work).EffectOf(of)
	var links []Link
	if isApplied {
		links = append(links, Link{
			Stage: StageOverride, Cluster: c.name, Verdict: OK, Reason: ReasonOverrideApplied, Message: describeOverride(of) + " is applied",
		})
	}
	if !isApplied && len(withoutEffect) == 0 {
		withoutEffect = []string{"it changes nothing"}
	}
	for _, message := range withoutEffect {
		links = append(links, Link{
			Stage: StageOverride, Cluster: c.name, Verdict: NotApplicable, Reason: ReasonOverrideWithoutEffect,
			Message: describeOverride(of) + " has no effect: " + message,
			Remedy:  "correct the overriders that the line names if they should have an effect",
		})
	}
	return links
}

func describeOverride(of override.Object) string {
	if of.GetNamespace() == "" {
		return "ClusterOverridePolicy " + of.GetName()
	}
	return "OverridePolicy " + of.GetNamespace() + "/" + of.GetName()
}
