// Package interpreters answers: which rules interpret objects, and what happens when the rules
// change? It constructs the interpreter of a process, and notifies the controllers of changed
// rules.
//
// Invariants:
//
//   - All users of the interpreter construct it with this package, so that all of them use the same
//     rules.
//   - A controller observes the rules before its first reconcile. For every later change, either
//     the change is handled, or a reconcile that started after the change has already used the new
//     rules.
//   - Changes that arrive while an observer handles earlier changes are combined and handled
//     together. So the memory for unhandled changes is limited, even if an observer never handles
//     them.
//   - Only objects of changed kinds are queued, and they are queued behind all changes by users.
package interpreters

import (
	"time"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// Options configure the interpreter.
type Options struct {
	// ResourceQuotaEstimate is the value of the feature gate with this name. If it is true, the
	// requirements of replicas contain the priority class. The default is false.
	ResourceQuotaEstimate bool
	// Sources have precedence over the built-in rules, and each source has precedence over the
	// following ones. A source whose rules change implements interpreter.Observable.
	Sources []interpreter.Source
	// Now returns the time for the conditions of templates. nil means the system clock.
	Now func() time.Time
}

// New returns the interpreter of a process.
func New(o Options) *interpreter.Interpreter {
	if o.Now == nil {
		o.Now = time.Now
	}
	sources := make([]interpreter.Source, 0, len(o.Sources)+1)
	sources = append(sources, o.Sources...)
	return interpreter.New(append(sources, builtin.New(builtin.Options{ResourceQuotaEstimate: o.ResourceQuotaEstimate, Now: o.Now}))...)
}
