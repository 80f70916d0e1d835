package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// rule is one set of overriders and where it stands in its policy.
type rule struct {
	policy     string
	index      int
	field      string
	target     *policyv1alpha1.ClusterAffinity
	overriders *policyv1alpha1.Overriders
}

// rulesOf lists the rules of a policy in order. A policy written before rules
// existed has a single one, spelled out in the spec itself.
func rulesOf(source Object) []rule {
	spec := source.OverrideSpec()
	title := title(source)
	if len(spec.OverrideRules) == 0 {
		return []rule{{
			policy: title, field: "spec.overriders",
			target: spec.TargetCluster, overriders: &spec.Overriders,
		}}
	}
	rules := make([]rule, len(spec.OverrideRules))
	for i := range spec.OverrideRules {
		rules[i] = rule{
			policy: title, index: i, field: fmt.Sprintf("spec.overrideRules[%d].overriders", i),
			target: spec.OverrideRules[i].TargetCluster, overriders: &spec.OverrideRules[i].Overriders,
		}
	}
	return rules
}

func title(source Object) string {
	if source.GetNamespace() == "" {
		return fmt.Sprintf("ClusterOverridePolicy %q", source.GetName())
	}
	return fmt.Sprintf("OverridePolicy %q", source.GetNamespace()+"/"+source.GetName())
}

func (r rule) empty() bool {
	o := r.overriders
	return len(o.ImageOverrider) == 0 && len(o.CommandOverrider) == 0 && len(o.ArgsOverrider) == 0 &&
		len(o.LabelsOverrider) == 0 && len(o.AnnotationsOverrider) == 0 &&
		len(o.FieldOverrider) == 0 && len(o.Plaintext) == 0
}

// apply runs the overriders of the rule in their fixed order, on manifest itself.
func (r rule) apply(manifest *unstructured.Unstructured, within *bounds) error {
	o := r.overriders
	steps := []struct {
		name  string
		count int
		run   func(i int) error
	}{
		{"imageOverrider", len(o.ImageOverrider), func(i int) error { return overrideImage(manifest, o.ImageOverrider[i]) }},
		{"commandOverrider", len(o.CommandOverrider), func(i int) error { return overrideWords(manifest, "command", o.CommandOverrider[i]) }},
		{"argsOverrider", len(o.ArgsOverrider), func(i int) error { return overrideWords(manifest, "args", o.ArgsOverrider[i]) }},
		{"labelsOverrider", len(o.LabelsOverrider), func(i int) error { return overrideKeys(manifest, "labels", o.LabelsOverrider[i]) }},
		{"annotationsOverrider", len(o.AnnotationsOverrider), func(i int) error {
			return overrideKeys(manifest, "annotations", o.AnnotationsOverrider[i])
		}},
		{"fieldOverrider", len(o.FieldOverrider), func(i int) error { return overrideField(manifest, o.FieldOverrider[i]) }},
		{"plaintext", len(o.Plaintext), func(i int) error { return overridePlaintext(manifest, o.Plaintext[i]) }},
	}
	for _, step := range steps {
		for i := range step.count {
			if err := step.run(i); err != nil {
				return r.fail(step.name, i, err)
			}
			within.observe(manifest, r, step.name, i)
		}
	}
	return nil
}
