package interpret

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/customization"
)

// inputs are the arguments of an operation.
type inputs struct {
	desired, observed *unstructured.Unstructured
	items             []workv1alpha2.AggregatedStatusItem
	replicas          int64
}

// object returns the only object of an operation that takes one object.
func (i inputs) object() *unstructured.Unstructured {
	if i.desired != nil {
		return i.desired
	}
	return i.observed
}

// result is one named result of an operation. The value can be encoded in JSON.
type result struct {
	name  string
	value any
}

// inputKind is the combination of input flags that an operation needs.
type inputKind string

const (
	oneObject            inputKind = "--desired-file or --observed-file"
	desiredAndObserved   inputKind = "--desired-file and --observed-file"
	desiredAndReplicas   inputKind = "--desired-file and --desired-replica"
	desiredAndStatusFile inputKind = "--desired-file and --status-file"
)

// runner runs one operation of a kind.
type runner struct {
	input inputKind
	// isSupported reports whether there is a rule for the operation.
	isSupported func(interpreter.Rules) bool
	// run calls the rule. It must be called only if the operation is supported.
	run func(context.Context, interpreter.Rules, inputs) ([]result, error)
}

// operation is an operation of the interpreter with the code that runs it.
type operation struct {
	customization.Operation
	runner
}

// operations returns all operations in the order in which the command lists them.
func operations() []operation {
	var all []operation
	for _, each := range customization.Operations() {
		if runner, ok := runners[each.Name]; ok {
			all = append(all, operation{each, runner})
		}
	}
	return all
}

func operationNamed(name string) (operation, error) {
	for _, operation := range operations() {
		if string(operation.Name) == name {
			return operation, nil
		}
	}
	return operation{}, command.NewUsageError("unknown operation %q: one of %s", name, strings.Join(operationNames(), ", "))
}

// runners has a row for each operation. A test checks that it is complete.
var runners = map[configv1alpha1.InterpreterOperation]runner{
	configv1alpha1.InterpreterOperationRetain: {
		input: desiredAndObserved, isSupported: func(r interpreter.Rules) bool { return r.Retain != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			return objectResult("retained")(rules.Retain(ctx, in.desired, in.observed))
		},
	},
	configv1alpha1.InterpreterOperationInterpretReplica: {
		input: oneObject, isSupported: func(r interpreter.Rules) bool { return r.Replicas != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			replicas, requirements, err := rules.Replicas(ctx, in.object())
			return []result{{"replica", replicas}, {"requires", requirements}}, err
		},
	},
	configv1alpha1.InterpreterOperationInterpretComponent: {
		input: oneObject, isSupported: func(r interpreter.Rules) bool { return r.Components != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			components, err := rules.Components(ctx, in.object())
			return []result{{"components", components}}, err
		},
	},
	configv1alpha1.InterpreterOperationReviseReplica: {
		input: desiredAndReplicas, isSupported: func(r interpreter.Rules) bool { return r.ReviseReplicas != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			return objectResult("revised")(rules.ReviseReplicas(ctx, in.desired, in.replicas))
		},
	},
	configv1alpha1.InterpreterOperationInterpretStatus: {
		input: oneObject, isSupported: func(r interpreter.Rules) bool { return r.ReflectStatus != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			status, err := rules.ReflectStatus(ctx, in.object())
			return []result{{"status", status}}, err
		},
	},
	configv1alpha1.InterpreterOperationAggregateStatus: {
		input: desiredAndStatusFile, isSupported: func(r interpreter.Rules) bool { return r.AggregateStatus != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			return objectResult("aggregatedStatus")(rules.AggregateStatus(ctx, in.desired, in.items))
		},
	},
	configv1alpha1.InterpreterOperationInterpretHealth: {
		input: oneObject, isSupported: func(r interpreter.Rules) bool { return r.IsHealthy != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			healthy, err := rules.IsHealthy(ctx, in.object())
			return []result{{"healthy", healthy}}, err
		},
	},
	configv1alpha1.InterpreterOperationInterpretDependency: {
		input: oneObject, isSupported: func(r interpreter.Rules) bool { return r.Dependencies != nil },
		run: func(ctx context.Context, rules interpreter.Rules, in inputs) ([]result, error) {
			dependencies, err := rules.Dependencies(ctx, in.object())
			return []result{{"dependencies", dependencies}}, err
		},
	},
}

// objectResult returns a function that makes the result of an operation that returns an object.
func objectResult(name string) func(*unstructured.Unstructured, error) ([]result, error) {
	return func(object *unstructured.Unstructured, err error) ([]result, error) {
		if err != nil {
			return nil, err
		}
		if object == nil {
			return nil, fmt.Errorf("%s: the rule returned no object", name)
		}
		return []result{{name, object.Object}}, nil
	}
}
