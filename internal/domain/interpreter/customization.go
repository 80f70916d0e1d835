package interpreter

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// Script is a script of a customization.
type Script struct {
	// Customization is the name of the ResourceInterpreterCustomization.
	Customization string
	// Text is the Lua text of the script. It is not empty.
	Text string
}

// Scripts holds a kind's scripts by operation. Only InterpretDependency can have more than one script.
type Scripts map[configv1alpha1.InterpreterOperation][]Script

// Equal reports whether both contain the same scripts from the same customizations.
func (s Scripts) Equal(other Scripts) bool {
	return maps.EqualFunc(s, other, slices.Equal[[]Script])
}

// TargetOf returns the kind to which the customization applies.
func TargetOf(customization *configv1alpha1.ResourceInterpreterCustomization) schema.GroupVersionKind {
	target := customization.Spec.Target
	return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
}

// MergeCustomizations returns the scripts of each kind that has at least one. If several customizations
// have a script for the same operation, the one whose name sorts first is used. For InterpretDependency,
// the scripts of all customizations are used, sorted by customization name. The result does not depend
// on the order of the customizations.
func MergeCustomizations(customizations []*configv1alpha1.ResourceInterpreterCustomization) map[schema.GroupVersionKind]Scripts {
	sorted := slices.SortedFunc(slices.Values(customizations), func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return strings.Compare(a.Name, b.Name)
	})
	operations := ScriptOperations()
	merged := map[schema.GroupVersionKind]Scripts{}
	for _, customization := range sorted {
		kind := TargetOf(customization)
		for _, operation := range operations {
			text := operation.Script(&customization.Spec.Customizations)
			if text == "" || !operation.Mergeable && len(merged[kind][operation.Name]) > 0 {
				continue
			}
			if merged[kind] == nil {
				merged[kind] = Scripts{}
			}
			merged[kind][operation.Name] = append(merged[kind][operation.Name], Script{Customization: customization.Name, Text: text})
		}
	}
	return merged
}

// ScriptOperation is an operation that a script can implement.
type ScriptOperation struct {
	// Name is the name of the operation in the API.
	Name configv1alpha1.InterpreterOperation
	// Field is the field of CustomizationRules that contains the script.
	Field string
	// Function is the name of the Lua function that the script defines.
	Function string
	// Help describes the arguments and the result of the function.
	Help string
	// Mergeable is true if all scripts for the operation run when several customizations of a kind have
	// one. If it is false, only one script per kind is used.
	Mergeable bool

	scriptField
}

// scriptField reads and writes an operation's script in CustomizationRules.
type scriptField struct {
	get func(*configv1alpha1.CustomizationRules) string
	set func(*configv1alpha1.CustomizationRules, string)
}

// Script returns the operation's script, or "" if the rules have none.
func (s scriptField) Script(rules *configv1alpha1.CustomizationRules) string { return s.get(rules) }

// SetScript sets the operation's script. An empty text removes it.
func (s scriptField) SetScript(rules *configv1alpha1.CustomizationRules, text string) {
	s.set(rules, text)
}

// rule has the structure of all fields of CustomizationRules.
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

// ScriptOperations returns the operations in the order in which commands list them.
func ScriptOperations() []ScriptOperation {
	type rules = configv1alpha1.CustomizationRules
	return []ScriptOperation{
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
			Name: configv1alpha1.InterpreterOperationInterpretDependency, Field: "dependencyInterpretation", Function: "GetDependencies",
			Mergeable:   true,
			Help:        "GetDependencies(desiredObj) returns a list of tables with the fields apiVersion, kind, namespace, and name or labelSelector, one for each object that desiredObj needs.",
			scriptField: fieldOf(func(r *rules) **configv1alpha1.DependencyInterpretation { return &r.DependencyInterpretation }),
		},
	}
}

// FindScriptOperation returns the operation with the given name.
func FindScriptOperation(name configv1alpha1.InterpreterOperation) (operation ScriptOperation, found bool) {
	for _, operation := range ScriptOperations() {
		if operation.Name == name {
			return operation, true
		}
	}
	return ScriptOperation{}, false
}
