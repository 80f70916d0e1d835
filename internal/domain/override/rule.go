package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// rule is a policy's rule: a set of overriders, with its field path in the policy.
type rule struct {
	policy     string
	index      int
	field      string
	target     *policyv1alpha1.ClusterAffinity
	overriders *policyv1alpha1.Overriders
}

// rulesOf returns the policy's rules in order. A policy with the deprecated fields spec.targetCluster
// and spec.overriders has a single rule.
func rulesOf(source Object) []rule {
	spec := source.OverrideSpec()
	policyName := displayName(source)
	if len(spec.OverrideRules) == 0 {
		return []rule{{
			policy: policyName, field: "spec.overriders",
			target: spec.TargetCluster, overriders: &spec.Overriders,
		}}
	}
	rules := make([]rule, len(spec.OverrideRules))
	for i := range spec.OverrideRules {
		rules[i] = rule{
			policy: policyName, index: i, field: fmt.Sprintf("spec.overrideRules[%d].overriders", i),
			target: spec.OverrideRules[i].TargetCluster, overriders: &spec.OverrideRules[i].Overriders,
		}
	}
	return rules
}

func displayName(source Object) string {
	if source.GetNamespace() == "" {
		return fmt.Sprintf("ClusterOverridePolicy %q", source.GetName())
	}
	return fmt.Sprintf("OverridePolicy %q", source.GetNamespace()+"/"+source.GetName())
}

func isEmpty(o *policyv1alpha1.Overriders) bool {
	return len(o.ImageOverrider) == 0 && len(o.CommandOverrider) == 0 && len(o.ArgsOverrider) == 0 &&
		len(o.LabelsOverrider) == 0 && len(o.AnnotationsOverrider) == 0 &&
		len(o.FieldOverrider) == 0 && len(o.Plaintext) == 0
}

// ruleApplication holds the state while a rule is applied to a manifest.
type ruleApplication struct {
	rule
	manifest *unstructured.Unstructured
	limits   *restrictions
	// ineffective lists the entries that had no effect, with the reason.
	ineffective []string
	// err is the first error, after which no entry is applied.
	err error
}

// apply applies the rule's overriders to the manifest, in place and in a fixed order. It returns the
// entries that had an effect, and messages about the other entries.
func (r rule) apply(
	manifest *unstructured.Unstructured, limits *restrictions,
) (effective policyv1alpha1.Overriders, ineffective []string, err error) {
	a := &ruleApplication{rule: r, manifest: manifest, limits: limits}
	o := r.overriders
	effective = policyv1alpha1.Overriders{
		ImageOverrider:       applyEntries(a, "imageOverrider", o.ImageOverrider, overrideImage),
		CommandOverrider:     applyEntries(a, "commandOverrider", o.CommandOverrider, overrideCommand),
		ArgsOverrider:        applyEntries(a, "argsOverrider", o.ArgsOverrider, overrideArgs),
		LabelsOverrider:      applyEntries(a, "labelsOverrider", o.LabelsOverrider, overrideLabels),
		AnnotationsOverrider: applyEntries(a, "annotationsOverrider", o.AnnotationsOverrider, overrideAnnotations),
		FieldOverrider:       applyEntries(a, "fieldOverrider", o.FieldOverrider, overrideField),
		Plaintext:            applyEntries(a, "plaintext", o.Plaintext, overridePlaintext),
	}
	return effective, a.ineffective, a.err
}

// applyEntries applies an overrider's entries and returns those that had an effect. The function apply
// returns why an entry had no effect, or an empty string.
func applyEntries[Entry any](
	a *ruleApplication, overrider string, entries []Entry, apply func(*unstructured.Unstructured, Entry) (string, error),
) (effective []Entry) {
	for i, entry := range entries {
		if a.err != nil {
			return nil
		}
		why, err := apply(a.manifest, entry)
		if err != nil {
			a.err = a.wrapError(overrider, i, err)
			return nil
		}
		if why != "" {
			a.ineffective = append(a.ineffective, fmt.Sprintf("%s, %s.%s[%d]: %s", a.policy, a.field, overrider, i, why))
			continue
		}
		a.limits.recordViolations(a.manifest, a.rule, overrider, i)
		effective = append(effective, entry)
	}
	return effective
}
