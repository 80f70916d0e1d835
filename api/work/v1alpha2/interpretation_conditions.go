package v1alpha2

// Conditions of bindings that report whether the interpreter could interpret the template. A
// condition is absent until an interpretation fails for the first time.
const (
	// TemplateInterpreted: the replicas or components of the template. While it is False, the spec
	// of the binding does not change.
	TemplateInterpreted = "TemplateInterpreted"

	// DependenciesInterpreted: the dependencies of the template. While it is False, the bindings of
	// the known dependencies do not change.
	DependenciesInterpreted = "DependenciesInterpreted"

	// StatusAggregated: the status of the template, from the status of all clusters. While it is
	// False, the status of the template does not change.
	StatusAggregated = "StatusAggregated"
)

// Reasons of TemplateInterpreted, DependenciesInterpreted and StatusAggregated.
const (
	// InterpreterFailedReason: a rule of the interpreter returned an error. The message names the
	// script with its line, or the webhook.
	InterpreterFailedReason = "InterpreterFailed"

	// InterpretedReason: the interpretation succeeded after it had failed.
	InterpretedReason = "Interpreted"
)
