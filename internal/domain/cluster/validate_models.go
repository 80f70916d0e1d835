package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// validateModels validates that the models, in the order of their grades, cover every amount of every
// resource exactly once, from 0 to UnboundedMax without a gap or overlap.
func validateModels(models []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range models {
		at := path.Index(i)
		errs = append(errs, validateRanges(models[i].Ranges, at.Child("ranges"))...)
		if i > 0 {
			errs = append(errs, validateSuccessor(&models[i-1], &models[i], at)...)
		}
	}
	if len(models) == 0 {
		return errs
	}
	last := len(models) - 1
	for i, r := range models[0].Ranges {
		if !r.Min.IsZero() {
			at := path.Index(0).Child("ranges").Index(i).Child("min")
			errs = append(errs, field.Invalid(at, r.Min.String(), "the lowest grade starts at 0"))
		}
	}
	for i, r := range models[last].Ranges {
		if !isUnbounded(r.Max) {
			at := path.Index(last).Child("ranges").Index(i).Child("max")
			errs = append(errs, field.Invalid(at, r.Max.String(), fmt.Sprintf("the highest grade ends at %d", UnboundedMax)))
		}
	}
	return errs
}

func validateRanges(ranges []clusterv1alpha1.ResourceModelRange, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range ranges {
		if r.Max.Cmp(r.Min) <= 0 {
			errs = append(errs, field.Invalid(path.Index(i), fmt.Sprintf("[%s,%s)", r.Min.String(), r.Max.String()), "max must be larger than min"))
		}
	}
	return errs
}

// validateSuccessor validates that the model begins where the model of the next lower grade ends.
func validateSuccessor(below, model *clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if below.Grade == model.Grade {
		errs = append(errs, field.Duplicate(path.Child("grade"), model.Grade))
	}
	if len(below.Ranges) != len(model.Ranges) {
		return append(errs, field.Invalid(path.Child("ranges"), len(model.Ranges),
			fmt.Sprintf("all grades describe the same resources, the grade below has %d", len(below.Ranges))))
	}
	for i, r := range model.Ranges {
		at := path.Child("ranges").Index(i)
		lower := below.Ranges[i]
		if r.Name != lower.Name {
			errs = append(errs, field.Invalid(at.Child("name"), r.Name,
				fmt.Sprintf("all grades describe the same resources in the same order, the grade below has %q here", lower.Name)))
			continue
		}
		if r.Min.Cmp(lower.Max) != 0 {
			errs = append(errs, field.Invalid(at.Child("min"), r.Min.String(),
				fmt.Sprintf("must be where the grade below ends, at %s", lower.Max.String())))
		}
	}
	return errs
}
