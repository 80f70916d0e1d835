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

// diagnoseOverrides reports which override policies change the template in which clusters, and which have
// no effect or nearly apply. An override policy without an effect is not a failure, because the object is
// delivered.
func (p *pipeline) diagnoseOverrides() []Link {
	template := p.Template.Value
	if p.Overrides.Err != nil {
		return []Link{Link{Stage: StageOverride}.unreadable("the override policies", p.Overrides.Err)}
	}
	policies := slices.SortedFunc(slices.Values(p.Overrides.Value), func(a, b override.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	var links []Link
	nearMisses := 0
	for _, each := range policies {
		if override.Specificity(each, template) != policy.MatchNone {
			links = append(links, p.explainOverride(each)...)
			continue
		}
		differences := policy.SelectorDifferences(template, each.OverrideSpec().ResourceSelectors, p.isServed)
		if len(differences) > 0 && nearMisses < maxNearMisses {
			nearMisses++
			links = append(links, Link{
				Stage: StageOverride, Result: NotApplicable, Reason: ReasonOverrideNearlySelects,
				Message: fmt.Sprintf("%s does not select the object, but nearly does: %s", describeOverride(each), strings.Join(differences, "; ")),
			})
		}
	}
	return links
}

// explainOverride describes for each cluster the effect of an override policy that selects the template.
func (p *pipeline) explainOverride(of override.Object) []Link {
	var links []Link
	isTargeting := len(binding.ExpectedClusters(p.Binding.Value.BindingSpec())) == 0
	for _, each := range p.clusters {
		if !each.isExpected || each.member == nil || !override.TargetsCluster(of, each.member) {
			continue
		}
		isTargeting = true
		// An outdated Work may have been rendered without the override policy. The stage work reports
		// why there is no current Work.
		if each.work != nil && each.isRendered {
			links = append(links, each.explainOverrideEffect(of)...)
		}
	}
	if !isTargeting && p.Clusters.Err == nil {
		return []Link{{
			Stage: StageOverride, Result: NotApplicable, Reason: ReasonOverrideElsewhere,
			Message: describeOverride(of) + " selects the object, but its targetCluster selects none of the clusters of the object",
		}}
	}
	return links
}

// explainOverrideEffect describes the effect of an override policy on the cluster's manifest.
func (c *clusterFacts) explainOverrideEffect(of override.Object) []Link {
	isApplied, withoutEffect := override.RecordOf(c.work).EffectOf(of)
	var links []Link
	if isApplied {
		links = append(links, Link{
			Stage: StageOverride, Cluster: c.name, Result: OK, Reason: ReasonOverrideApplied, Message: describeOverride(of) + " is applied",
		})
	}
	if !isApplied && len(withoutEffect) == 0 {
		withoutEffect = []string{"it changes nothing"}
	}
	for _, message := range withoutEffect {
		links = append(links, Link{
			Stage: StageOverride, Cluster: c.name, Result: NotApplicable, Reason: ReasonOverrideWithoutEffect,
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
