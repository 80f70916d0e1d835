package policy

import (
	"context"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Interpret sets the components of the template or, if components are not used, the replicas of the
// template and the requirements of its Pods. components reports whether the feature gate
// MultiplePodTemplatesScheduling is enabled. Interpret returns the operation that it used. The
// operation is empty for a kind that is not a workload.
func (in *BindingInput) Interpret(ctx context.Context, rules interpreter.Rules, components bool) (operation configv1alpha1.InterpreterOperation, err error) {
	switch {
	case components && rules.Components != nil:
		in.Components, err = rules.Components(ctx, in.Template)
		return configv1alpha1.InterpreterOperationInterpretComponent, err
	case rules.Replicas != nil:
		in.Replicas, in.Requirements, err = rules.Replicas(ctx, in.Template)
		return configv1alpha1.InterpreterOperationInterpretReplica, err
	default:
		return "", nil
	}
}
