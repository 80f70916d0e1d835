package script

import (
	"context"
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Rules returns the rules that run the given scripts. Operations without a script are nil. If a script
// does not compile, its rule returns the compiler's error.
func (e *Engine) Rules(scripts interpreter.Scripts) interpreter.Rules {
	return interpreter.RulesOf(func(name configv1alpha1.InterpreterOperation) (functions, bool) {
		found := e.functions(scripts, name)
		return found, len(found) > 0
	})
}

// functions holds the script functions, at least one, that implement an operation. Dependencies calls all
// of them, and the other methods only the first one.
type functions []*scriptFunction

// scriptFunction is a script's function that implements an operation.
type scriptFunction struct {
	engine        *Engine
	customization string
	operation     interpreter.ScriptOperation
	script        *cached
}

func (e *Engine) functions(scripts interpreter.Scripts, name configv1alpha1.InterpreterOperation) functions {
	operation, _ := interpreter.FindScriptOperation(name)
	var all functions
	for _, script := range scripts[name] {
		all = append(all, &scriptFunction{
			engine: e, customization: script.Customization, operation: operation,
			script: e.cached(script.Text, operation.Function),
		})
	}
	return all
}

// call runs the function and passes its results to read, which must not keep them. The arguments have the
// types that unstructured objects contain. A nil list is nil in the script. Errors name the customization
// and the operation.
func (f *scriptFunction) call(ctx context.Context, results int, read func(*sandbox, []lua.LValue) error, arguments ...any) error {
	main, err := f.script.compile()
	if err != nil {
		return f.wrap(fmt.Errorf("the script does not compile: %w", err))
	}
	call := invocation{script: main, function: f.operation.Function, arguments: arguments, results: results, read: read}
	err = f.script.breaker.Do(namespaceOf(arguments), f.engine.options.Now, func() (interpreter.CallOutcome, error) {
		s := f.engine.pool.Get().(*sandbox)
		err := s.call(ctx, call)
		switch {
		case err == nil:
			s.release()
		case errors.As(err, new(*timeoutError)):
			return interpreter.CallExceededLimits, err
		case ctx.Err() != nil:
			return interpreter.CallUnfinished, err
		}
		return interpreter.CallWithinLimits, err
	})
	if err != nil {
		return f.wrap(err)
	}
	return nil
}

// wrap adds the customization and the operation to the error.
func (f *scriptFunction) wrap(err error) error {
	return fmt.Errorf("customization %s, %s: %w", f.customization, f.operation.Name, err)
}

// namespaceOf returns the namespace of the object in the first argument, which is the Breaker's key.
func namespaceOf(arguments []any) string {
	object, _ := arguments[0].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}
