package interpreter

import configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"

// CustomOperation is an operation that a script can implement.
type CustomOperation struct {
	// Name is the name of the operation in the API.
	Name configv1alpha1.InterpreterOperation
	// Field is the field of CustomizationRules that contains the script.
	Field string
	// Function is the name of the Lua function that the script defines.
	Function string
	// Help describes the arguments and the result of the function.
	Help string
	// Mergeable reports whether all scripts for the operation run if several customizations of a
	// kind have one. If Mergeable is false, the kind can have only one script for the operation.
	Mergeable bool

	scriptField
}

// scriptField reads and writes the script of one operation.
type scriptField struct {
	get func(*configv1alpha1.CustomizationRules) string
	set func(*configv1alpha1.CustomizationRules, string)
}

// Script returns the script for the operation, or "" if the rules have none.
func (s scriptField) Script(rules *configv1alpha1.CustomizationRules) string { return s.get(rules) }

// SetScript sets the script for the operation. An empty text removes the script.
func (s scriptField) SetScript(rules *configv1alpha1.CustomizationRules, text string) {
	s.set(rules, text)
}

// rule is the structure of all fields of CustomizationRules.
type rule = struct {
	LuaScript string `json:"luaScript"`
}

func fieldOf[T ~rule](pick func(*configv1alpha1.CustomizationRules) **T) scriptField {
	return scriptField{
		get: func(rules *configv1alpha1.CustomizationRules) string {
			if field := *pick(rules); field != nil {
				return rule(*field).LuaScript
			}
			return ""
		},
		set: func(rules *configv1alpha1.CustomizationRules, text string) {
			*pick(rules) = nil
			if text != "" {
				field := T(rule{LuaScript: text})
				*pick(rules) = &field
			}
		},
	}
}

// CustomOperations returns the operations in the order in which commands list them.
func CustomOperations() []CustomOperation {
	type rules = configv1alpha1.CustomizationRules
	return []CustomOperation{
		{
			Name: configv1alpha1.InterpreterOperationRetain, Field: "retention", Function: "Retain",
			Help:        "Retain(desiredObj, observedObj) returns desiredObj with the values that the member cluster owns. observedObj is the object in the member cluster.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.LocalValueRetention { return &r.Retention }),
		},
		{
			Name: configv1alpha1.InterpreterOperationInterpretReplica, Field: "replicaResource", Function: "GetReplicas",
			Help:        "GetReplicas(desiredObj) returns the number of replicas, and a table with the requirements of one replica. The table is nil if a replica has no requirements.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.ReplicaResourceRequirement { return &r.ReplicaResource }),
		},
		{
			Name: configv1alpha1.InterpreterOperationInterpretComponent, Field: "componentResource", Function: "GetComponents",
			Help:        "GetComponents(desiredObj) returns a list of tables with the fields name, replicas and replicaRequirements, one for each component.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.ComponentResourceRequirement { return &r.ComponentResource }),
		},
		{
			Name: configv1alpha1.InterpreterOperationReviseReplica, Field: "replicaRevision", Function: "ReviseReplica",
			Help:        "ReviseReplica(desiredObj, desiredReplica) returns desiredObj with the number of replicas of one cluster.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.ReplicaRevision { return &r.ReplicaRevision }),
		},
		{
			Name: configv1alpha1.InterpreterOperationInterpretStatus, Field: "statusReflection", Function: "ReflectStatus",
			Help:        "ReflectStatus(observedObj) returns a table with the status that is collected from the member cluster.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.StatusReflection { return &r.StatusReflection }),
		},
		{
			Name: configv1alpha1.InterpreterOperationAggregateStatus, Field: "statusAggregation", Function: "AggregateStatus",
			Help:        "AggregateStatus(desiredObj, items) returns desiredObj with the status of all clusters. Each item has the fields clusterName, status, applied, appliedMessage and health. items is nil if no cluster has reported.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.StatusAggregation { return &r.StatusAggregation }),
		},
		{
			Name: configv1alpha1.InterpreterOperationInterpretHealth, Field: "healthInterpretation", Function: "InterpretHealth",
			Help:        "InterpretHealth(observedObj) returns true if the object in the member cluster is healthy, and false otherwise.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.HealthInterpretation { return &r.HealthInterpretation }),
		},
		{
			Name: configv1alpha1.InterpreterOperationInterpretDependency, Field: "dependencyInterpretation", Function: "GetDependencies", Mergeable: true,
			Help:        "GetDependencies(desiredObj) returns a list of tables with the fields apiVersion, kind, namespace, and name or labelSelector, one for each object that desiredObj needs.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.DependencyInterpretation { return &r.DependencyInterpretation }),
		},
	}
}

// CustomOperationNamed returns the operation with the given name.
func CustomOperationNamed(name configv1alpha1.InterpreterOperation) (operation CustomOperation, found bool) {
	for _, operation := range CustomOperations() {
		if operation.Name == name {
			return operation, true
		}
	}
	return CustomOperation{}, false
}
