package interpret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/interpreter"
)

// result is one named result of an operation. Its value can be encoded in JSON.
type result struct {
	name  string
	value any
}

// runFunc runs one operation on its input.
type runFunc func(context.Context, inputs) ([]result, error)

// operationRow describes the input of an operation and the rule that runs it.
type operationRow struct {
	// flags are the input flags. The operation needs all of them, or exactly one if takesOneObject is true.
	flags          []string
	takesOneObject bool
	// rule returns the function that runs the operation, or nil if the rules lack it.
	rule func(interpreter.Rules) runFunc
}

// describeInput returns the flags that the operation needs.
func (o operationRow) describeInput() string {
	separator := " and --"
	if o.takesOneObject {
		separator = " or --"
	}
	return "--" + strings.Join(o.flags, separator)
}

var objectFlags = []string{desiredFileFlag, observedFileFlag}

// operationRows has a row for each operation.
var operationRows = map[configv1alpha1.InterpreterOperation]operationRow{
	configv1alpha1.InterpreterOperationRetain: {objectFlags, false, func(r interpreter.Rules) runFunc {
		return reviseObject("retained", r.Retain, func(in inputs) *unstructured.Unstructured { return in.observed })
	}},
	configv1alpha1.InterpreterOperationInterpretReplica: {objectFlags, true, func(r interpreter.Rules) runFunc {
		if r.Replicas == nil {
			return nil
		}
		return func(ctx context.Context, in inputs) ([]result, error) {
			replicas, requirements, err := r.Replicas(ctx, in.object())
			return []result{{"replica", replicas}, {"requires", requirements}}, err
		}
	}},
	configv1alpha1.InterpreterOperationInterpretComponent: {objectFlags, true, func(r interpreter.Rules) runFunc {
		return readObject("components", r.Components)
	}},
	configv1alpha1.InterpreterOperationReviseReplica: {[]string{desiredFileFlag, replicasFlag}, false, func(r interpreter.Rules) runFunc {
		return reviseObject("revised", r.ReviseReplicas, func(in inputs) int64 { return in.replicas })
	}},
	configv1alpha1.InterpreterOperationInterpretStatus: {objectFlags, true, func(r interpreter.Rules) runFunc {
		return readObject("status", r.ReflectStatus)
	}},
	configv1alpha1.InterpreterOperationAggregateStatus: {[]string{desiredFileFlag, statusFileFlag}, false, func(r interpreter.Rules) runFunc {
		return reviseObject("aggregatedStatus", r.AggregateStatus, func(in inputs) []workv1alpha2.AggregatedStatusItem { return in.items })
	}},
	configv1alpha1.InterpreterOperationInterpretHealth: {objectFlags, true, func(r interpreter.Rules) runFunc {
		return readObject("healthy", r.IsHealthy)
	}},
	configv1alpha1.InterpreterOperationInterpretDependency: {objectFlags, true, func(r interpreter.Rules) runFunc {
		return readObject("dependencies", r.Dependencies)
	}},
}

// readObject returns a function that runs a rule whose only argument is an object. It returns nil for a nil rule.
func readObject[T any](name string, rule func(context.Context, *unstructured.Unstructured) (T, error)) runFunc {
	if rule == nil {
		return nil
	}
	return func(ctx context.Context, in inputs) ([]result, error) {
		value, err := rule(ctx, in.object())
		return []result{{name, value}}, err
	}
}

// reviseObject returns a function that runs a rule which changes the desired object according to one more argument. It returns
// nil for a nil rule.
func reviseObject[T any](name string, rule func(context.Context, *unstructured.Unstructured, T) (*unstructured.Unstructured, error),
	argument func(inputs) T) runFunc {
	if rule == nil {
		return nil
	}
	return func(ctx context.Context, in inputs) ([]result, error) {
		object, err := rule(ctx, in.desired, argument(in))
		if err == nil && object == nil {
			err = fmt.Errorf("%s: the rule returned no object", name)
		}
		if err != nil {
			return nil, err
		}
		return []result{{name, object.Object}}, nil
	}
}

// operation is an operation of the interpreter with its row.
type operation struct {
	interpreter.ScriptOperation
	operationRow
}

func findOperation(name string) (operation, error) {
	found, isKnown := interpreter.FindScriptOperation(configv1alpha1.InterpreterOperation(name))
	if !isKnown {
		return operation{}, command.NewUsageError("unknown operation %q: one of %s", name, strings.Join(operationNames(), ", "))
	}
	return operation{found, operationRows[found.Name]}, nil
}

func operationNames() (names []string) {
	for _, operation := range interpreter.ScriptOperations() {
		names = append(names, string(operation.Name))
	}
	return names
}

// operationsHelp lists the operations with the flags that each of them needs.
func operationsHelp() string {
	var text strings.Builder
	text.WriteString("The operations and their input:\n")
	for _, operation := range interpreter.ScriptOperations() {
		fmt.Fprintf(&text, "  %-20s %s\n", operation.Name, operationRows[operation.Name].describeInput())
	}
	return text.String()
}

// execute runs the operation and prints its results.
func (o *options) execute(ctx context.Context, names []string) error {
	operation, err := findOperation(o.operationName)
	if err != nil {
		return err
	}
	in, err := o.readInputs(ctx, operation)
	if err != nil {
		return err
	}
	run, err := o.findRule(ctx, operation, in.object().GroupVersionKind(), names)
	if err != nil {
		return err
	}
	results, err := run(ctx, in)
	if err != nil {
		return err
	}
	return o.printResults(results)
}

// findRule returns the function that runs the operation for a kind with the customizations that the user named, or with the rules
// of the control plane if the user named none.
func (o *options) findRule(ctx context.Context, operation operation, kind schema.GroupVersionKind, names []string) (runFunc, error) {
	if len(o.filenames) == 0 && len(names) == 0 {
		return o.findLiveRule(ctx, operation, kind)
	}
	sources, err := o.readCustomizations(ctx, names)
	if err != nil {
		return nil, err
	}
	o.noteUnusedScripts(sources, operation.ScriptOperation)
	if err := verifyTargets(sources, kind); err != nil {
		return nil, err
	}
	customized, err := interpreters.NewCustomized(o.interpreterOptions(), customizationsOf(sources))
	if err != nil {
		return nil, err
	}
	if operation.rule(customized.Rules(kind)) == nil {
		return nil, fmt.Errorf("rule is not enabled: no given customization has a script for %s of %s; set spec.customizations.%s.luaScript",
			operation.Name, describeKind(kind), operation.Field)
	}
	return operation.rule(interpreter.New(customized).Rules(kind)), nil
}

// verifyTargets returns an error if none of the customizations is for the kind.
func verifyTargets(sources []source, kind schema.GroupVersionKind) error {
	var targets []string
	for _, source := range sources {
		target := interpreter.TargetOf(source.ResourceInterpreterCustomization)
		text := describeKind(target)
		switch {
		case target == kind:
			return nil
		case target.Empty():
			text = "no kind (spec.target is not set)"
		}
		if !slices.Contains(targets, text) {
			targets = append(targets, text)
		}
	}
	return fmt.Errorf("the object is %s, but the given customizations are for %s", describeKind(kind), strings.Join(targets, ", "))
}

// findLiveRule returns the function that runs the operation with the rules of the control plane, and prints the source of the
// rule.
func (o *options) findLiveRule(ctx context.Context, operation operation, kind schema.GroupVersionKind) (runFunc, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("the control plane did not respond within %s", requestTimeout))
	defer cancel()
	live, err := o.LoadRules(ctx, o.interpreterOptions())
	if err != nil {
		return nil, err
	}
	run := operation.rule(live.Rules(kind))
	if run == nil {
		return nil, fmt.Errorf("%w: the control plane has no customization, no webhook and no built-in rule for it",
			interpreter.NewNotFoundError(operation.Name, kind))
	}
	origin := "the default for every kind"
	for _, source := range live.Sources() {
		if operation.rule(source.Rules(kind)) != nil {
			origin = source.Describe(kind, operation.Name)
			break
		}
	}
	o.Program.Messagef("%s of %s: interpreted by %s", operation.Name, describeKind(kind), origin)
	return run, nil
}
