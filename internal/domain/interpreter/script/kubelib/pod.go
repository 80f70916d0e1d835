package kubelib

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// defaultNamespace is the namespace of dependencies if a script gives none.
const defaultNamespace = "default"

// podFunctions are the functions for pod templates.
type podFunctions struct {
	includePriorityClass bool
}

// requirements is kube.accuratePodRequirements(podTemplate). It returns nil for a Pod without
// requirements.
func (p podFunctions) requirements(state *lua.LState) int {
	const name = "accuratePodRequirements"
	checkCount(state, name, 1)
	template, err := requirementsTemplate(stdlib.HostOf(state), checkPodTemplate(state, name))
	if err != nil {
		raise(state, name, 1, fmt.Errorf("reading the pod template: %w", err))
	}
	requirements := builtin.PodRequirements(template)
	if requirements == nil {
		state.Push(lua.LNil)
		return 1
	}
	if p.includePriorityClass {
		requirements.PriorityClassName = template.Spec.PriorityClassName
	}
	result, err := requirementsObject(requirements)
	if err != nil {
		raise(state, name, 1, fmt.Errorf("converting the requirements: %w", err))
	}
	pushResult(state, result)
	return 1
}

// requirementsObject converts requirements to an object.
func requirementsObject(requirements *workv1alpha2.ReplicaRequirements) (map[string]any, error) {
	object := map[string]any{}
	if claim := requirements.NodeClaim; claim != nil {
		converted, err := claimObject(claim)
		if err != nil {
			return nil, err
		}
		object["nodeClaim"] = converted
	}
	if len(requirements.ResourceRequest) > 0 {
		request := make(map[string]any, len(requirements.ResourceRequest))
		for name, quantity := range requirements.ResourceRequest {
			request[string(name)] = quantity.String()
		}
		object["resourceRequest"] = request
	}
	if requirements.PriorityClassName != "" {
		object["priorityClassName"] = requirements.PriorityClassName
	}
	return object, nil
}

func claimObject(claim *workv1alpha2.NodeClaim) (map[string]any, error) {
	if claim.HardNodeAffinity != nil || len(claim.Tolerations) > 0 {
		return runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
	}
	labels := make(map[string]any, len(claim.NodeSelector))
	for key, value := range claim.NodeSelector {
		labels[key] = value
	}
	return map[string]any{"nodeSelector": labels}, nil
}

// dependencies is kube.getPodDependencies(podTemplate, namespace). It returns a list of references,
// sorted by kind and name.
func (p podFunctions) dependencies(state *lua.LState) int {
	const name = "getPodDependencies"
	checkCount(state, name, 2)
	object := checkPodTemplate(state, name)
	namespace := defaultNamespace
	switch value := state.Get(2).(type) {
	case *lua.LNilType:
	case lua.LString:
		namespace = string(value)
	default:
		raise(state, name, 2, fmt.Errorf("the namespace is a %s, not a string", value.Type()))
	}
	if err := checkQuantities(object); err != nil {
		raise(state, name, 1, err)
	}
	count(stdlib.HostOf(state), object)
	template, err := convert(object)
	if err != nil {
		raise(state, name, 1, fmt.Errorf("reading the pod template: %w", err))
	}
	references := builtin.PodDependencies(template, namespace)
	result := make([]any, 0, len(references))
	for i := range references {
		result = append(result, map[string]any{
			"apiVersion": references[i].APIVersion,
			"kind":       references[i].Kind,
			"namespace":  references[i].Namespace,
			"name":       references[i].Name,
		})
	}
	pushResult(state, result)
	return 1
}

// pushResult counts and pushes a result.
func pushResult(state *lua.LState, result any) {
	host := stdlib.HostOf(state)
	host.Allocate(sizeOf(result))
	state.Push(host.Lua(result))
}

// checkPodTemplate returns the first argument. It raises an error if it is not an object.
func checkPodTemplate(state *lua.LState, function string) map[string]any {
	table, ok := state.Get(1).(*lua.LTable)
	if state.Get(1) == lua.LNil {
		raise(state, function, 1, errors.New("the pod template is nil, not a table"))
	}
	if !ok {
		raise(state, function, 1, fmt.Errorf("the pod template is a %s, not a table", state.Get(1).Type()))
	}
	value, err := stdlib.HostOf(state).Go(table)
	if err != nil {
		raise(state, function, 1, err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		raise(state, function, 1, errors.New("the pod template is a list"))
	}
	return object
}

// count counts the conversion of a value.
func count(host stdlib.Host, value any) {
	size := sizeOf(value)
	host.Allocate(2 * size)
	host.Step(podSteps + size/bytesPerStep)
}

// convert converts an object to a pod template. An empty table of a script may stand for a list, but
// arrives here as an empty map. If the object is no pod template, convert tries it without its empty
// maps.
func convert(object map[string]any) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, template)
	if err == nil {
		return template, nil
	}
	pruned, _ := withoutEmptyMaps(object).(map[string]any)
	template = &corev1.PodTemplateSpec{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(pruned, template) == nil {
		return template, nil
	}
	return nil, err
}
