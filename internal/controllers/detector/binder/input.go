package binder

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// PriorityClassKind is the kind of PriorityClasses. PriorityClasses are read as unstructured
// objects, because they are templates too and can then share the watch of templates.
var PriorityClassKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}

// input returns the input from which a binding is made.
func (b *Binder) input(ctx context.Context, template *unstructured.Unstructured, p policy.Object) (policy.BindingInput, error) {
	input := policy.BindingInput{Template: template, Policy: p, WorkloadAffinity: b.Features.WorkloadAffinity}
	if err := b.interpretTemplate(ctx, &input); err != nil {
		return input, err
	}
	if template.GetNamespace() == "" {
		return input, nil
	}
	priority, err := b.schedulePriority(ctx, p)
	input.SchedulePriority = priority
	return input, err
}

// interpretTemplate sets what the interpreter says about the template, and records events about it.
func (b *Binder) interpretTemplate(ctx context.Context, input *policy.BindingInput) error {
	template := input.Template
	operation, err := input.Interpret(ctx, b.Rules.Rules(template.GroupVersionKind()), b.Features.MultiplePodTemplates)
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return b.recordInterpretation(template, workv1alpha2.EventReasonGetComponentsFailed, "components", err)
	case configv1alpha1.InterpreterOperationInterpretReplica:
		if b.Features.ResourceQuotaEstimate && input.Requirements != nil && input.Requirements.Namespace == "" {
			input.Requirements = input.Requirements.DeepCopy()
			input.Requirements.Namespace = template.GetNamespace()
		}
		if err == nil {
			b.Events.RecordSuccess(template, workv1alpha2.EventReasonGetReplicasSucceed, "The template has %d replicas", input.Replicas)
		}
		return b.recordInterpretation(template, workv1alpha2.EventReasonGetReplicasFailed, "replicas", err)
	default:
		return nil
	}
}

func (b *Binder) recordInterpretation(template *unstructured.Unstructured, reason, what string, err error) error {
	if err == nil {
		b.Events.ClearFailure(template, reason)
		return nil
	}
	err = fmt.Errorf("interpreting %s of %s %s: %w", what, template.GetKind(), client.ObjectKeyFromObject(template), err)
	b.Events.RecordFailure(template, reason, err)
	return &interpretationError{err}
}

// interpretationError is an error of a rule of the interpreter.
type interpretationError struct{ error }

func (i *interpretationError) Unwrap() error { return i.error }

// reportInterpretation reports the result of the interpretation on the binding, if there is one. It
// returns the current binding, and the error of interpreters.Report.
func (b *Binder) reportInterpretation(ctx context.Context, bound binding.Object, err error) (binding.Object, error) {
	if bound == nil || err != nil && !errors.As(err, new(*interpretationError)) {
		return bound, err
	}
	return interpreters.Report(ctx, b.Karmada, bound, workv1alpha2.TemplateInterpreted, err, b.Now())
}

// schedulePriority returns the value of the PriorityClass that the policy names, or nil if the
// policy names none.
func (b *Binder) schedulePriority(ctx context.Context, p policy.Object) (*int32, error) {
	priority := p.PropagationSpec().SchedulePriority
	if !b.Features.PriorityScheduling || priority == nil {
		return nil, nil
	}
	if priority.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not supported yet", priority.PriorityClassSource)
	}
	class, err := b.Templates.GetCached(ctx, PriorityClassKind, types.NamespacedName{Name: priority.PriorityClassName})
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, fmt.Errorf("priority class %q does not exist", priority.PriorityClassName)
	}
	return new(policy.PriorityClassValue(class)), nil
}
