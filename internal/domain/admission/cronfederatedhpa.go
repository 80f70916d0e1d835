package admission

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
)

func (r Rules) cronFederatedHPA(report *report, object *autoscalingv1alpha1.CronFederatedHPA) {
	report.invalid(field.NewPath("metadata", "name"), object.Name, validation.IsDNS1123Subdomain(object.Name))
	target, targetPath := object.Spec.ScaleTargetRef, specPath().Child("scaleTargetRef")
	report.scaleTarget(targetPath, target)
	scalesHPA := target.APIVersion == autoscalingv1alpha1.GroupVersion.String()
	if scalesHPA && target.Kind != autoscalingv1alpha1.FederatedHPAKind {
		report.add(field.NotSupported(targetPath.Child("kind"), target.Kind, []string{autoscalingv1alpha1.FederatedHPAKind}))
	}
	names := unique[string]{}
	for i := range object.Spec.Rules {
		rule, at := &object.Spec.Rules[i], specPath().Child("rules").Index(i)
		names.see(report, at.Child("name"), rule.Name)
		r.schedule(report, at, rule)
		if scalesHPA {
			report.hpaBounds(at, rule)
			continue
		}
		report.workloadReplicas(at, rule)
	}
}

func (r Rules) schedule(report *report, path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	if r.ParseSchedule != nil {
		if err := r.ParseSchedule(rule.Schedule); err != nil {
			report.add(field.Invalid(path.Child("schedule"), rule.Schedule, err.Error()))
		}
	}
	if r.LoadTimeZone != nil && rule.TimeZone != nil {
		if err := r.LoadTimeZone(*rule.TimeZone); err != nil {
			report.add(field.Invalid(path.Child("timeZone"), *rule.TimeZone, err.Error()))
		}
	}
}

// hpaBounds is about a rule that moves the bounds of a FederatedHPA.
func (r *report) hpaBounds(path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	lowest, highest := rule.TargetMinReplicas, rule.TargetMaxReplicas
	if rule.TargetReplicas != nil {
		r.warn(path.Child("targetReplicas"), "has no effect on a FederatedHPA; use targetMinReplicas and targetMaxReplicas")
	}
	if lowest == nil && highest == nil {
		r.add(field.Required(path.Child("targetMinReplicas"), "a FederatedHPA needs targetMinReplicas, targetMaxReplicas, or both"))
		return
	}
	r.positive(path.Child("targetMinReplicas"), lowest)
	r.positive(path.Child("targetMaxReplicas"), highest)
	if lowest != nil && highest != nil && *lowest > *highest {
		r.add(field.Invalid(path.Child("targetMinReplicas"), *lowest, "must not be greater than targetMaxReplicas"))
	}
}

// workloadReplicas is about a rule that scales a workload.
func (r *report) workloadReplicas(path *field.Path, rule *autoscalingv1alpha1.CronFederatedHPARule) {
	at := path.Child("targetReplicas")
	if rule.TargetMinReplicas != nil {
		r.warn(path.Child("targetMinReplicas"), "has no effect on a workload; use targetReplicas")
	}
	if rule.TargetMaxReplicas != nil {
		r.warn(path.Child("targetMaxReplicas"), "has no effect on a workload; use targetReplicas")
	}
	switch {
	case rule.TargetReplicas == nil:
		r.add(field.Required(at, "a workload is scaled to a number of replicas"))
	case *rule.TargetReplicas < 0:
		r.add(field.Invalid(at, *rule.TargetReplicas, "must not be negative"))
	}
}

func (r *report) positive(path *field.Path, value *int32) {
	if value != nil && *value <= 0 {
		r.add(field.Invalid(path, *value, "must be greater than 0"))
	}
}
