// Package kubelib contains the Lua library kube: calculations with quantities and pod templates. Its
// results agree with those of the built-in rules.
package kubelib

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// Functions returns the functions of the library by name. With resourceQuotaEstimate, the
// requirements that accuratePodRequirements returns contain the priority class of the Pod.
func Functions(resourceQuotaEstimate bool) map[string]lua.LGFunction {
	pods := podFunctions{includePriorityClass: resourceQuotaEstimate}
	return map[string]lua.LGFunction{
		"accuratePodRequirements": pods.requirements,
		"getPodDependencies":      pods.dependencies,
		"getResourceQuantity":     resourceQuantity,
		"resourceAdd":             resourceAdd,
	}
}

// checkCount raises an error unless the function was called with count arguments.
func checkCount(state *lua.LState, function string, count int) {
	if got := state.GetTop(); got != count {
		state.RaiseError("kube.%s requires %d arguments, but was called with %d", function, count, got)
	}
}

// raise raises an error about an argument.
func raise(state *lua.LState, function string, argument int, err error) {
	message := fmt.Sprintf("kube.%s: argument %d: %v", function, argument, err)
	stdlib.HostOf(state).Allocate(len(message))
	state.RaiseError("%s", message)
}
