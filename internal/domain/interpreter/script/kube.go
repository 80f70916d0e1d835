package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// kubeFunctions returns the functions of the module kube: calculations with quantities and pod
// templates. Their results agree with those of the built-in rules.
func (s *sandbox) kubeFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"accuratePodRequirements": s.podRequirements,
		"getPodDependencies":      s.podDependencies,
		"getResourceQuantity":     resourceQuantity,
		"resourceAdd":             s.addQuantities,
	}
}

// checkCount raises an error unless the function was called with count arguments.
func checkCount(state *lua.LState, function string, count int) {
	if got := state.GetTop(); got != count {
		state.RaiseError("kube.%s requires %d arguments, but was called with %d", function, count, got)
	}
}

// raiseArgument raises an error about an argument.
func raiseArgument(state *lua.LState, function string, argument int, err error) {
	state.RaiseError("kube.%s: argument %d: %s", function, argument, err.Error())
}

// addQuantities is kube.resourceAdd(quantity, …). It returns the exact sum, in the format of the first
// quantity that is not 0. nil is 0.
func (s *sandbox) addQuantities(state *lua.LState) int {
	var sum resource.Quantity
	for i := 1; i <= state.GetTop(); i++ {
		sum.Add(quantityArgument(state, "resourceAdd", i))
	}
	return s.pushString(sum.String())
}

// resourceQuantity is kube.getResourceQuantity(quantity). It returns an approximate number. nil is 0.
func resourceQuantity(state *lua.LState) int {
	const name = "getResourceQuantity"
	checkCount(state, name, 1)
	quantity := quantityArgument(state, name, 1)
	number := quantity.AsApproximateFloat64()
	if number < 0 || math.IsInf(number, 0) {
		raiseArgument(state, name, 1, fmt.Errorf("the quantity %s is negative or infinite", quantity.String()))
	}
	state.Push(lua.LNumber(number))
	return 1
}

func quantityArgument(state *lua.LState, function string, argument int) resource.Quantity {
	switch value := state.Get(argument).(type) {
	case *lua.LNilType:
	case lua.LString:
		if err := interpreter.CheckQuantity(string(value)); err != nil {
			raiseArgument(state, function, argument, err)
		}
		quantity, err := resource.ParseQuantity(string(value))
		if err != nil {
			raiseArgument(state, function, argument, fmt.Errorf("%q is not a quantity: %w", string(value), err))
		}
		return quantity
	default:
		raiseArgument(state, function, argument, fmt.Errorf("a quantity is a string such as \"500m\", not a %s", value.Type()))
	}
	return resource.Quantity{}
}

// podRequirements is kube.accuratePodRequirements(podTemplate). It returns nil for a Pod without
// requirements.
func (s *sandbox) podRequirements(state *lua.LState) int {
	const name = "accuratePodRequirements"
	checkCount(state, name, 1)
	template := s.podTemplateArgument(state, name)
	requirements := builtin.PodRequirements(template)
	if requirements == nil {
		state.Push(lua.LNil)
		return 1
	}
	if s.engine.options.ResourceQuotaEstimate {
		requirements.PriorityClassName = template.Spec.PriorityClassName
	}
	result, err := runtime.DefaultUnstructuredConverter.ToUnstructured(requirements)
	if err != nil {
		raiseArgument(state, name, 1, fmt.Errorf("converting the requirements: %w", err))
	}
	state.Push(s.toLua(result))
	return 1
}

// podDependencies is kube.getPodDependencies(podTemplate, namespace). It returns a list of references,
// sorted by kind and name. The default namespace is default.
func (s *sandbox) podDependencies(state *lua.LState) int {
	const name = "getPodDependencies"
	checkCount(state, name, 2)
	namespace := corev1.NamespaceDefault
	switch value := state.Get(2).(type) {
	case *lua.LNilType:
	case lua.LString:
		namespace = string(value)
	default:
		raiseArgument(state, name, 2, fmt.Errorf("the namespace is a %s, not a string", value.Type()))
	}
	references := builtin.PodDependencies(s.podTemplateArgument(state, name), namespace)
	result := make([]any, 0, len(references))
	for i := range references {
		result = append(result, map[string]any{
			"apiVersion": references[i].APIVersion,
			"kind":       references[i].Kind,
			"namespace":  references[i].Namespace,
			"name":       references[i].Name,
		})
	}
	state.Push(s.toLua(result))
	return 1
}

// podTemplateArgument returns the first argument. It raises an error if it is no pod template.
func (s *sandbox) podTemplateArgument(state *lua.LState, function string) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	if err := s.readPodTemplate(state.Get(1), template); err != nil {
		raiseArgument(state, function, 1, err)
	}
	return template
}

func (s *sandbox) readPodTemplate(value lua.LValue, template *corev1.PodTemplateSpec) error {
	if value.Type() != lua.LTTable {
		return fmt.Errorf("the pod template is a %s value, not a table", value.Type())
	}
	converted, err := s.convert(value, nil, nil, map[string]any{})
	if err != nil {
		return err
	}
	object, isObject := converted.(map[string]any)
	if !isObject {
		return errors.New("the pod template is a list")
	}
	if err := checkQuantities(object); err != nil {
		return fmt.Errorf("reading the pod template: %w", err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the pod template: %w", err)
	}
	if err := utiljson.Unmarshal(text, template); err != nil {
		return fmt.Errorf("reading the pod template: %w", err)
	}
	return nil
}

// checkQuantities calls interpreter.CheckQuantity for the quantities in a part of a pod template. Other
// fields may have the same text, so only the fields for quantities are checked.
func checkQuantities(value any) error {
	switch value := value.(type) {
	case []any:
		for _, entry := range value {
			if err := checkQuantities(entry); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			check := checkQuantities
			switch key {
			case "requests", "limits", "overhead", "sizeLimit", "divisor":
				check = checkQuantityTexts
			}
			if err := check(value[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// checkQuantityTexts calls interpreter.CheckQuantity for a quantity or the quantities in an object.
func checkQuantityTexts(value any) error {
	switch value := value.(type) {
	case string:
		return interpreter.CheckQuantity(value)
	case float64:
		return interpreter.CheckQuantity(fmt.Sprint(value))
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := checkQuantityTexts(value[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
