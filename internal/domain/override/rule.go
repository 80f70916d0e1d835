package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// rule is one set of overriders with the path of the set in the policy.
type rule struct {
	policy     string
	index      int
	field      string
	target     *policyv1alpha1.ClusterAffinity
	overriders *policyv1alpha1.Overriders
}

// rulesOf returns the rules of a policy in order. A policy that uses the deprecated
// fields spec.targetCluster and spec.overriders has a single rule.
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

func (r rule) isEmpty() bool {
	o := r.overriders
	return len(o.ImageOverrider) == 0 && len(o.CommandOverrider) == 0 && len(o.ArgsOverrider) == 0 &&
		len(o.LabelsOverrider) == 0 && len(o.AnnotationsOverrider) == 0 &&
		len(o.FieldOverrider) == 0 && len(o.Plaintext) == 0
}

// apply applies the overriders of the rule to manifest, in place and in a fixed order.
func (r rule) apply(manifest *unstructured.Unstructured, limits *restrictions) error {
	o := r.overriders
	steps := []struct {
		name  string
		count int
		run   func(i int) error
	}{
		{"imageOverrider", len(o.ImageOverrider), func(i int) error { return overrideImage(manifest, o.ImageOverrider[i]) }},
		{"commandOverrider", len(o.CommandOverrider), func(i int) error { return overrideCommandOrArgs(manifest, "command", o.CommandOverrider[i]) }},
		{"argsOverrider", len(o.ArgsOverrider), func(i int) error { return overrideCommandOrArgs(manifest, "args", o.ArgsOverrider[i]) }},
		{"labelsOverrider", len(o.LabelsOverrider), func(i int) error { return overrideLabelsOrAnnotations(manifest, "labels", o.LabelsOverrider[i]) }},
		{"annotationsOverrider", len(o.AnnotationsOverrider), func(i int) error {
			return overrideLabelsOrAnnotations(manifest, "annotations", o.AnnotationsOverrider[i])
		}},
		{"fieldOverrider", len(o.FieldOverrider), func(i int) error { return overrideField(manifest, o.FieldOverrider[i]) }},
		{"plaintext", len(o.Plaintext), func(i int) error { return overridePlaintext(manifest, o.Plaintext[i]) }},
	}
	for _, step := range steps {
		for i := range step.count {
			if err := step.run(i); err != nil {
				return r.wrapError(step.name, i, err)
			}
			limits.recordViolations(manifest, r, step.name, i)
		}
	}
	return nil
}
