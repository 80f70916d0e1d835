package v1alpha1

// InterpreterOperation is an operation that an interpreter performs on an
// object.
type InterpreterOperation string

const (
	// InterpreterOperationAll stands for every operation in a rule.
	InterpreterOperationAll InterpreterOperation = "*"
	// InterpreterOperationInterpretReplica returns the number of replicas of a
	// template and the requirements of one replica.
	InterpreterOperationInterpretReplica InterpreterOperation = "InterpretReplica"
	// InterpreterOperationInterpretComponent returns the components of a
	// template with several pod templates.
	InterpreterOperationInterpretComponent InterpreterOperation = "InterpretComponent"
	// InterpreterOperationReviseReplica sets the number of replicas.
	InterpreterOperationReviseReplica InterpreterOperation = "ReviseReplica"
	// InterpreterOperationRetain keeps the values that the member cluster owns.
	InterpreterOperationRetain InterpreterOperation = "Retain"
	// InterpreterOperationAggregateStatus combines the statuses of all clusters
	// into the status of the template.
	InterpreterOperationAggregateStatus InterpreterOperation = "AggregateStatus"
	// InterpreterOperationInterpretStatus returns the status to collect from a
	// member object.
	InterpreterOperationInterpretStatus InterpreterOperation = "InterpretStatus"
	// InterpreterOperationInterpretHealth reports whether a member object is
	// healthy.
	InterpreterOperationInterpretHealth InterpreterOperation = "InterpretHealth"
	// InterpreterOperationInterpretDependency returns the objects that a
	// template depends on.
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
	// InterpreterOperationPrune is reserved: it is part of the wire format, but
	// webhooks cannot register for it and are never called for it.
	InterpreterOperationPrune InterpreterOperation = "Prune"
)
