package admission

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
)

const (
	defaultCPUUtilization = 80

	maxStabilizationWindowSeconds = 3600
	maxPolicyPeriodSeconds        = 1800
)

func defaultFederatedHPA(hpa *autoscalingv1alpha1.FederatedHPA) {
	if hpa.Spec.MinReplicas == nil {
		hpa.Spec.MinReplicas = new(int32(1))
	}
	if len(hpa.Spec.Metrics) == 0 {
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type:               autoscalingv2.UtilizationMetricType,
					AverageUtilization: new(int32(defaultCPUUtilization)),
				},
			},
		}}
	}
	if behavior := hpa.Spec.Behavior; behavior != nil {
		behavior.ScaleUp = defaultScaling(behavior.ScaleUp, new(int32(0)),
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
		// Do not set the stabilization window for scaling down, so that the HPA controller uses its own
		// default.
		behavior.ScaleDown = defaultScaling(behavior.ScaleDown, nil,
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	}
}

func defaultScaling(rules *autoscalingv2.HPAScalingRules, window *int32,
	policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if rules == nil {
		rules = &autoscalingv2.HPAScalingRules{}
	}
	if rules.StabilizationWindowSeconds == nil {
		rules.StabilizationWindowSeconds = window
	}
	if rules.SelectPolicy == nil {
		rules.SelectPolicy = new(autoscalingv2.MaxChangePolicySelect)
	}
	if len(rules.Policies) == 0 {
		rules.Policies = policies
	}
	return rules
}

func (r *report) validateFederatedHPA(hpa *autoscalingv1alpha1.FederatedHPA) {
	r.addInvalid(field.NewPath("metadata", "name"), hpa.Name, validation.IsDNS1123Subdomain(hpa.Name))
	path, spec := specPath(), &hpa.Spec
	r.validateScaleTarget(path.Child("scaleTargetRef"), spec.ScaleTargetRef)
	if spec.MinReplicas != nil && *spec.MinReplicas < 1 {
		r.addErrors(field.Invalid(path.Child("minReplicas"), *spec.MinReplicas, "must be at least 1"))
	}
	if spec.MaxReplicas < 1 {
		r.addErrors(field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must be at least 1"))
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		r.addErrors(field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must not be less than minReplicas"))
	}
	for i := range spec.Metrics {
		r.validateMetric(path.Child("metrics").Index(i), &spec.Metrics[i])
	}
	if spec.Behavior != nil {
		r.validateScalingRules(path.Child("behavior", "scaleUp"), spec.Behavior.ScaleUp)
		r.validateScalingRules(path.Child("behavior", "scaleDown"), spec.Behavior.ScaleDown)
	}
}

func (r *report) validateScaleTarget(path *field.Path, target autoscalingv2.CrossVersionObjectReference) {
	r.validatePathSegment(path.Child("kind"), target.Kind)
	r.validatePathSegment(path.Child("name"), target.Name)
}

// validatePathSegment validates that the value can be a segment of a request path.
func (r *report) validatePathSegment(path *field.Path, value string) {
	if value == "" {
		r.addErrors(field.Required(path, "must not be empty"))
		return
	}
	r.addInvalid(path, value, content.IsPathSegmentName(value))
}

// validateMetric validates that a metric has exactly the source that its type names.
func (r *report) validateMetric(path *field.Path, metric *autoscalingv2.MetricSpec) {
	given := map[autoscalingv2.MetricSourceType]bool{
		autoscalingv2.ObjectMetricSourceType:            metric.Object != nil,
		autoscalingv2.PodsMetricSourceType:              metric.Pods != nil,
		autoscalingv2.ResourceMetricSourceType:          metric.Resource != nil,
		autoscalingv2.ContainerResourceMetricSourceType: metric.ContainerResource != nil,
	}
	supported := []autoscalingv2.MetricSourceType{
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType,
		autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType,
	}
	if !slices.Contains(supported, metric.Type) {
		r.addErrors(field.NotSupported(path.Child("type"), metric.Type, supported))
	}
	for _, source := range supported {
		switch {
		case given[source] && source != metric.Type:
			r.addErrors(field.Forbidden(path.Child(sourceField(source)), fmt.Sprintf("the type is %s", metric.Type)))
		case !given[source] && source == metric.Type:
			r.addErrors(field.Required(path.Child(sourceField(source)), fmt.Sprintf("the type is %s", metric.Type)))
		}
	}
	if metric.External != nil {
		r.addErrors(field.Forbidden(path.Child("external"), "external metrics are not supported"))
	}
	r.validateMetricSources(path, metric)
}

func sourceField(source autoscalingv2.MetricSourceType) string {
	switch source {
	case autoscalingv2.ObjectMetricSourceType:
		return "object"
	case autoscalingv2.PodsMetricSourceType:
		return "pods"
	case autoscalingv2.ContainerResourceMetricSourceType:
		return "containerResource"
	default:
		return "resource"
	}
}

func (r *report) validateMetricSources(path *field.Path, metric *autoscalingv2.MetricSpec) {
	if source := metric.Object; source != nil {
		path := path.Child("object")
		r.validateScaleTarget(path.Child("describedObject"), source.DescribedObject)
		r.validatePathSegment(path.Child("metric", "name"), source.Metric.Name)
		r.validateMetricTarget(path.Child("target"), &source.Target)
		if source.Target.Value == nil && source.Target.AverageValue == nil {
			r.addErrors(field.Required(path.Child("target", "averageValue"), "an object metric needs value or averageValue"))
		}
	}
	if source := metric.Pods; source != nil {
		path := path.Child("pods")
		r.validatePathSegment(path.Child("metric", "name"), source.Metric.Name)
		r.validateMetricTarget(path.Child("target"), &source.Target)
		if source.Target.AverageValue == nil {
			r.addErrors(field.Required(path.Child("target", "averageValue"), "a pods metric needs averageValue"))
		}
	}
	if source := metric.Resource; source != nil {
		r.validateResourceTarget(path.Child("resource"), source.Name, &source.Target)
	}
	if source := metric.ContainerResource; source != nil {
		path := path.Child("containerResource")
		r.addInvalid(path.Child("container"), source.Container, validation.IsDNS1123Label(source.Container))
		r.validateResourceTarget(path, source.Name, &source.Target)
	}
}

func (r *report) validateResourceTarget(path *field.Path, name corev1.ResourceName, target *autoscalingv2.MetricTarget) {
	if name == "" {
		r.addErrors(field.Required(path.Child("name"), "a resource metric needs a name"))
	}
	r.validateMetricTarget(path.Child("target"), target)
	if (target.AverageUtilization == nil) == (target.AverageValue == nil) {
		r.addErrors(field.Required(path.Child("target", "averageUtilization"), "exactly one of averageUtilization and averageValue is needed"))
	}
}

func (r *report) validateMetricTarget(path *field.Path, target *autoscalingv2.MetricTarget) {
	supported := []autoscalingv2.MetricTargetType{
		autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType,
	}
	if !slices.Contains(supported, target.Type) {
		r.addErrors(field.NotSupported(path.Child("type"), target.Type, supported))
	}
	if target.Value != nil && target.Value.Sign() <= 0 {
		r.addErrors(field.Invalid(path.Child("value"), target.Value.String(), "must be greater than 0"))
	}
	if target.AverageValue != nil && target.AverageValue.Sign() <= 0 {
		r.addErrors(field.Invalid(path.Child("averageValue"), target.AverageValue.String(), "must be greater than 0"))
	}
	r.validatePositive(path.Child("averageUtilization"), target.AverageUtilization)
}

func (r *report) validateScalingRules(path *field.Path, rules *autoscalingv2.HPAScalingRules) {
	if rules == nil {
		return
	}
	if window := rules.StabilizationWindowSeconds; window != nil && (*window < 0 || *window > maxStabilizationWindowSeconds) {
		r.addErrors(field.Invalid(path.Child("stabilizationWindowSeconds"), *window,
			validation.InclusiveRangeError(0, maxStabilizationWindowSeconds)))
	}
	selects := []autoscalingv2.ScalingPolicySelect{
		autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect,
	}
	if rules.SelectPolicy != nil && !slices.Contains(selects, *rules.SelectPolicy) {
		r.addErrors(field.NotSupported(path.Child("selectPolicy"), *rules.SelectPolicy, selects))
	}
	if len(rules.Policies) == 0 {
		r.addErrors(field.Required(path.Child("policies"), "at least one policy is needed"))
	}
	for i := range rules.Policies {
		r.validateScalingPolicy(path.Child("policies").Index(i), &rules.Policies[i])
	}
}

func (r *report) validateScalingPolicy(path *field.Path, policy *autoscalingv2.HPAScalingPolicy) {
	types := []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}
	if !slices.Contains(types, policy.Type) {
		r.addErrors(field.NotSupported(path.Child("type"), policy.Type, types))
	}
	if policy.Value <= 0 {
		r.addErrors(field.Invalid(path.Child("value"), policy.Value, "must be greater than 0"))
	}
	if policy.PeriodSeconds < 1 || policy.PeriodSeconds > maxPolicyPeriodSeconds {
		r.addErrors(field.Invalid(path.Child("periodSeconds"), policy.PeriodSeconds, validation.InclusiveRangeError(1, maxPolicyPeriodSeconds)))
	}
}
