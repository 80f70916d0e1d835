package interpret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/customization"
)

// execute runs the operation and prints its results.
func (o *options) execute(ctx context.Context, names []string) error {
	operation, err := operationNamed(o.operationName)
	if err != nil {
		return err
	}
	in, err := o.readInputs(ctx, operation)
	if err != nil {
		return err
	}
	rules, err := o.findRules(ctx, operation, in.object().GroupVersionKind(), names)
	if err != nil {
		return err
	}
	results, err := operation.run(ctx, rules, in)
	if err != nil {
		return err
	}
	return o.printResults(results)
}

// findRules returns the rules for a kind, which support the operation. They are those of the given
// customizations, or those of the control plane if none are given.
func (o *options) findRules(ctx context.Context, operation operation, kind schema.GroupVersionKind, names []string) (interpreter.Rules, error) {
	if len(o.filenames) == 0 && len(names) == 0 {
		return o.liveRules(ctx, operation, kind)
	}
	sources, err := o.findCustomizations(ctx, names)
	if err != nil {
		return interpreter.Rules{}, err
	}
	o.noteUnusedScripts(sources, operation.Operation)
	if err := checkTargets(sources, kind); err != nil {
		return interpreter.Rules{}, err
	}
	customized, err := interpreters.NewCustomized(o.interpreterOptions(), customizationsOf(sources))
	if err != nil {
		return interpreter.Rules{}, err
	}
	if !operation.isSupported(customized.Rules(kind)) {
		return interpreter.Rules{}, fmt.Errorf("rule is not enabled: no given customization has a script for %s of %s; set spec.customizations.%s.luaScript",
			operation.Name, describeKind(kind), operation.Field)
	}
	return interpreter.New(customized).Rules(kind), nil
}

// checkTargets returns an error if no customization is for the kind.
func checkTargets(sources []source, kind schema.GroupVersionKind) error {
	var targets []string
	for _, source := range sources {
		target := customization.TargetOf(source.ResourceInterpreterCustomization)
		if target == kind {
			return nil
		}
		text := describeKind(target)
		if target.Empty() {
			text = "no kind (spec.target is not set)"
		}
		if !slices.Contains(targets, text) {
			targets = append(targets, text)
		}
	}
	return fmt.Errorf("the object is %s, but the given customizations are for %s", describeKind(kind), strings.Join(targets, ", "))
}

// liveRules returns the rules of the control plane, and prints which of its sources supports the
// operation.
func (o *options) liveRules(ctx context.Context, operation operation, kind schema.GroupVersionKind) (interpreter.Rules, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer from the control plane within %s", requestTimeout))
	defer cancel()
	live, err := o.LoadRules(ctx, o.interpreterOptions())
	if err != nil {
		return interpreter.Rules{}, err
	}
	rules := live.Rules(kind)
	if !operation.isSupported(rules) {
		return interpreter.Rules{}, fmt.Errorf("%w: the control plane has no customization, no webhook and no own rule for it",
			interpreter.NewNotFoundError(operation.Name, kind))
	}
	answer := "the default for every kind"
	for _, source := range live.Sources() {
		if operation.isSupported(source.Rules(kind)) {
			answer = source.Describe(kind, operation.Name)
			break
		}
	}
	o.Program.Messagef("%s of %s: answered by %s", operation.Name, describeKind(kind), answer)
	return rules, nil
}
