package policy

import (
	"context"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Interpret sets Components, or else Replicas and Requirements, from the template. usesComponents tells
// whether the feature gate MultiplePodTemplatesScheduling is enabled. Interpret returns the operation
// that it used, or an empty one for a kind that is not a workload.
func (in *BindingInput) Interpret(
	ctx context.Context, rules interpreter.Rules, usesComponents bool,
) (operation configv1alpha1.InterpreterOperation, err error) {
	switch {
	case usesComponents && rules.Components != nil:
		in.Components, err = rules.Components(ctx, in.Template)
		return configv1alpha1.InterpreterOperationInterpretComponent, err
	case rules.Replicas != nil:
		in.Replicas, in.Requirements, err = rules.Replicas(ctx, in.Template)
		return configv1alpha1.InterpreterOperationInterpretReplica, err
	default:
		return "", nil
	}
}
