package kubelib

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// The requirements of a Pod depend on a few fields of its template. The functions of this file read
// only these, because a conversion of the whole template takes ten times as long. An error of them
// contains the path of the field.

const (
	// templateSteps and templateBytes are the cost of a template without containers.
	templateSteps, templateBytes = 64, 4096
	// containerSteps and containerBytes are the cost of a container.
	containerSteps, containerBytes = 32, 2048
)

// requirementsTemplate returns the pod template with the fields that its requirements depend on.
func requirementsTemplate(host stdlib.Host, object map[string]any) (*corev1.PodTemplateSpec, error) {
	host.Step(templateSteps)
	host.Allocate(templateBytes)
	template := &corev1.PodTemplateSpec{}
	object, err := objectField(object, "", "spec")
	if err != nil {
		return nil, err
	}
	spec := &template.Spec
	spec.PriorityClassName, err = stringField(object, "spec", "priorityClassName")
	if err != nil {
		return nil, err
	}
	if spec.Containers, err = containers(host, object, "containers"); err != nil {
		return nil, err
	}
	if spec.InitContainers, err = containers(host, object, "initContainers"); err != nil {
		return nil, err
	}
	if spec.Overhead, err = resourceList(host, object, "spec", "overhead"); err != nil {
		return nil, err
	}
	if err := readPodLevelResources(host, object, spec); err != nil {
		return nil, err
	}
	if err := readScheduling(host, object, spec); err != nil {
		return nil, err
	}
	return template, nil
}

func containers(host stdlib.Host, spec map[string]any, name string) ([]corev1.Container, error) {
	list, err := listField(spec, "spec", name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	host.Step(containerSteps * len(list))
	host.Allocate(containerBytes * len(list))
	result := make([]corev1.Container, len(list))
	for i, entry := range list {
		path := "spec." + name + "[" + strconv.Itoa(i) + "]"
		object, err := asObject(entry, path)
		if err != nil {
			return nil, err
		}
		resources, err := objectField(object, path, "resources")
		if err != nil {
			return nil, err
		}
		if result[i].Resources, err = requestsAndLimits(host, resources, path+".resources"); err != nil {
			return nil, err
		}
		policy, err := stringField(object, path, "restartPolicy")
		if err != nil {
			return nil, err
		}
		if policy != "" {
			restartPolicy := corev1.ContainerRestartPolicy(policy)
			result[i].RestartPolicy = &restartPolicy
		}
	}
	return result, nil
}

func requestsAndLimits(host stdlib.Host, resources map[string]any, path string) (corev1.ResourceRequirements, error) {
	requests, err := resourceList(host, resources, path, "requests")
	if err != nil {
		return corev1.ResourceRequirements{}, err
	}
	limits, err := resourceList(host, resources, path, "limits")
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}, err
}

func readPodLevelResources(host stdlib.Host, object map[string]any, spec *corev1.PodSpec) error {
	resources, err := objectField(object, "spec", "resources")
	if err != nil || resources == nil {
		return err
	}
	podLevel, err := requestsAndLimits(host, resources, "spec.resources")
	spec.Resources = &podLevel
	return err
}

// readScheduling reads the fields that select nodes.
func readScheduling(host stdlib.Host, object map[string]any, spec *corev1.PodSpec) (err error) {
	if spec.NodeSelector, err = stringMap(host, object, "spec", "nodeSelector"); err != nil {
		return err
	}
	affinity, err := objectField(object, "spec", "affinity")
	if err != nil || object["tolerations"] == nil && affinity["nodeAffinity"] == nil {
		return err
	}
	part := map[string]any{"tolerations": object["tolerations"]}
	if nodeAffinity := affinity["nodeAffinity"]; nodeAffinity != nil {
		part["affinity"] = map[string]any{"nodeAffinity": nodeAffinity}
	}
	count(host, part)
	converted, err := convert(map[string]any{"spec": part})
	if err != nil {
		return err
	}
	spec.Tolerations, spec.Affinity = converted.Spec.Tolerations, converted.Spec.Affinity
	return nil
}

func resourceList(host stdlib.Host, object map[string]any, path, name string) (corev1.ResourceList, error) {
	quantities, err := objectField(object, path, name)
	if err != nil || len(quantities) == 0 {
		return nil, err
	}
	host.Step(quantitySteps * len(quantities))
	host.Allocate(2 * quantityBytes * len(quantities))
	list := make(corev1.ResourceList, len(quantities))
	for _, resourceName := range sortedKeys(quantities) {
		quantity, err := quantityOf(quantities[resourceName])
		if err != nil {
			return nil, fmt.Errorf("%s.%s.%s: %w", path, name, resourceName, err)
		}
		list[corev1.ResourceName(resourceName)] = quantity
	}
	return list, nil
}

// quantityOf returns a quantity of an object, in which it may be a number.
func quantityOf(value any) (resource.Quantity, error) {
	switch value := value.(type) {
	case nil:
		return resource.Quantity{}, nil
	case int64:
		return *resource.NewQuantity(value, resource.DecimalSI), nil
	case float64:
		return parseQuantity(strconv.FormatFloat(value, 'g', -1, 64))
	case string:
		return parseQuantity(value)
	default:
		return resource.Quantity{}, errors.New("a quantity is a string or a number, not a " + typeName(value))
	}
}

// sortedKeys returns the names of fields in order, so that the first error is always the same.
func sortedKeys(object map[string]any) []string {
	if len(object) == 1 {
		for name := range object {
			return []string{name}
		}
	}
	return slices.Sorted(maps.Keys(object))
}
