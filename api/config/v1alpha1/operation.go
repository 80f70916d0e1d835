package v1alpha1

// InterpreterOperation is a question that the control plane asks about an
// object.
type InterpreterOperation string

const (
	// InterpreterOperationAll stands for every operation in a rule.
	InterpreterOperationAll InterpreterOperation = "*"
	// InterpreterOperationInterpretReplica asks how many replicas a template
	// wants and what one of them needs.
	InterpreterOperationInterpretReplica InterpreterOperation = "InterpretReplica"
	// InterpreterOperationInterpretComponent asks for the components of a
	// template that runs several pod templates.
	InterpreterOperationInterpretComponent InterpreterOperation = "InterpretComponent"
	// InterpreterOperationReviseReplica asks to set the number of replicas.
	InterpreterOperationReviseReplica InterpreterOperation = "ReviseReplica"
	// InterpreterOperationRetain asks to keep the values a member cluster owns.
	InterpreterOperationRetain InterpreterOperation = "Retain"
	// InterpreterOperationAggregateStatus asks to combine the statuses of all
	// clusters into that of the template.
	InterpreterOperationAggregateStatus InterpreterOperation = "AggregateStatus"
	// InterpreterOperationInterpretStatus asks which status to collect from a
	// member object.
	InterpreterOperationInterpretStatus InterpreterOperation = "InterpretStatus"
	// InterpreterOperationInterpretHealth asks whether a member object is
	// healthy.
	InterpreterOperationInterpretHealth InterpreterOperation = "InterpretHealth"
	// InterpreterOperationInterpretDependency asks which objects a template
	// needs beside it.
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
	// InterpreterOperationPrune is reserved: it is part of the wire format, but
	// no webhook may register for it and none is ever asked.
	InterpreterOperationPrune InterpreterOperation = "Prune"
)
