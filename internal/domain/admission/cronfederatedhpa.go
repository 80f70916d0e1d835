package admission

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
)

func (r Options) validateCronFederatedHPA(report *report, object *autoscalingv1alpha1.CronFederatedHPA) {
	report.addInvalid(field.NewPath("metadata", "name"), object.Name, validation.IsDNS1123Subdomain(object.Name))
	target, targetPath := object.Spec.ScaleTargetRef, specPath().Child("scaleTargetRef")
	report.validateScaleTarget(targetPath, target)
	scalesHPA := target.APIVersion == autoscalingv1alpha1.GroupVersion.String()
	if scalesHPA && target.Kind != autoscalingv1alpha1.FederatedHPAKind {
		report.addErrors(field.NotSupported(targetPath.Child("kind"), target.Kind, []string{autoscalingv1alpha1.FederatedHPAKind}))
	}
	names := uniqueValues[string]{}
	for i := range object.Spec.Rules {
		rule, path := &object.Spec.Rules[i], specPath().Child("rules").Index(i)
		names.add(report, path.Child("name"), rule.Name)
		r.validateSchedule(report, path, rule)
		if scalesHPA {
			report.validateHPALimits(path, rule)
			continue
		}
		report.validateWorkloadReplicas(path, rule)
	}
}

func (r Options) validateSchedule(report *report, path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	if r.ParseSchedule != nil {
		if err := r.ParseSchedule(rule.Schedule); err != nil {
			report.addErrors(field.Invalid(path.Child("schedule"), rule.Schedule, err.Error()))
		}
	}
	if r.LoadTimeZone != nil && rule.TimeZone != nil {
		if err := r.LoadTimeZone(*rule.TimeZone); err != nil {
			report.addErrors(field.Invalid(path.Child("timeZone"), *rule.TimeZone, err.Error()))
		}
	}
}

// validateHPALimits validates a rule that sets a FederatedHPA's limits.
func (r *report) validateHPALimits(path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	lowest, highest := rule.TargetMinReplicas, rule.TargetMaxReplicas
	if rule.TargetReplicas != nil {
		r.addWarning(path.Child("targetReplicas"), "has no effect on a FederatedHPA; use targetMinReplicas and targetMaxReplicas")
	}
	if lowest == nil && highest == nil {
		r.addErrors(field.Required(path.Child("targetMinReplicas"), "a FederatedHPA needs targetMinReplicas, targetMaxReplicas, or both"))
		return
	}
	r.validatePositive(path.Child("targetMinReplicas"), lowest)
	r.validatePositive(path.Child("targetMaxReplicas"), highest)
	if lowest != nil && highest != nil && *lowest > *highest {
		r.addErrors(field.Invalid(path.Child("targetMinReplicas"), *lowest, "must not be greater than targetMaxReplicas"))
	}
}

// validateWorkloadReplicas validates a rule that scales a workload.
func (r *report) validateWorkloadReplicas(path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	itemPath := path.Child("targetReplicas")
	if rule.TargetMinReplicas != nil {
		r.addWarning(path.Child("targetMinReplicas"), "has no effect on a workload; use targetReplicas")
	}
	if rule.TargetMaxReplicas != nil {
		r.addWarning(path.Child("targetMaxReplicas"), "has no effect on a workload; use targetReplicas")
	}
	switch {
	case rule.TargetReplicas == nil:
		r.addErrors(field.Required(itemPath, "a workload is scaled to a number of replicas"))
	case *rule.TargetReplicas < 0:
		r.addErrors(field.Invalid(itemPath, *rule.TargetReplicas, "must not be negative"))
	}
}

func (r *report) validatePositive(path *field.Path, value *int32) {
	if value != nil && *value <= 0 {
		r.addErrors(field.Invalid(path, *value, "must be greater than 0"))
	}
}
