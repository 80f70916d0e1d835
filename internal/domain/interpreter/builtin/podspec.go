package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// podReader reads the requirements of Pod templates.
type podReader struct {
	includePriorityClass bool
}

func (p podReader) requirements(template *corev1.PodTemplateSpec) *workv1alpha2.ReplicaRequirements {
	requirements := PodRequirements(template)
	if requirements != nil && p.includePriorityClass {
		requirements.PriorityClassName = template.Spec.PriorityClassName
	}
	return requirements
}

// PodRequirements returns the requirements of a Pod from the template: the resources that the Kubernetes
// scheduler reserves for it, and the nodes on which it may run. It returns nil for a Pod that can run on
// any node and requests no resources. Namespace and PriorityClassName are empty. The result may share
// memory with the template.
func PodRequirements(template *corev1.PodTemplateSpec) *workv1alpha2.ReplicaRequirements {
	claim := nodeClaimOf(&template.Spec)
	request := podRequest(&template.Spec)
	if claim == nil && len(request) == 0 {
		return nil
	}
	return &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request}
}

func nodeClaimOf(spec *corev1.PodSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity == nil && len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0 {
		return nil
	}
	return claim
}

// podRequest returns the Pod's maximum request during its lifetime, per resource. While the Pod runs, it
// is the sum of all containers and sidecars. While the Pod starts, it is the sum of an init container and
// the sidecars that were started before it. Pod-level requests take precedence over container requests,
// and the runtime overhead is added. Zeros and resources that are not node resources are omitted. The
// result is nil if no resources remain.
func podRequest(spec *corev1.PodSpec) corev1.ResourceList {
	running, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addResources(running, containerRequest(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		request := containerRequest(&spec.InitContainers[i])
		if isSidecar(&spec.InitContainers[i]) {
			addResources(running, request)
			addResources(sidecars, request)
			continue
		}
		addResources(request, sidecars)
		raiseResources(peak, request)
	}
	raiseResources(running, peak)
	applyPodLevelRequests(running, spec.Resources)
	addResources(running, spec.Overhead)

	for name, quantity := range running {
		if quantity.Sign() <= 0 || !isNodeResource(name) {
			delete(running, name)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running
}

// applyPodLevelRequests replaces the sums of the container requests with the Pod-level requests or, for
// resources without a request, with the Pod-level limits.
func applyPodLevelRequests(request corev1.ResourceList, podLevel *corev1.ResourceRequirements) {
	if podLevel == nil {
		return
	}
	for name, quantity := range podLevel.Requests {
		if isPodLevelResource(name) {
			request[name] = quantity.DeepCopy()
		}
	}
	for name, quantity := range podLevel.Limits {
		if _, ok := request[name]; !ok && isPodLevelResource(name) {
			request[name] = quantity.DeepCopy()
		}
	}
}

// isPodLevelResource reports whether a Pod can have a Pod-level request for the resource.
func isPodLevelResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isSidecar reports whether the init container keeps running while the other containers run.
func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containerRequest returns a new list with the container's requests. For a resource without a request, it
// uses the limit, which is also the API server's default.
func containerRequest(container *corev1.Container) corev1.ResourceList {
	request := make(corev1.ResourceList, len(container.Resources.Requests)+len(container.Resources.Limits))
	for name, quantity := range container.Resources.Limits {
		request[name] = quantity.DeepCopy()
	}
	for name, quantity := range container.Resources.Requests {
		request[name] = quantity.DeepCopy()
	}
	return request
}

// addResources adds the quantities of more to sum. The quantities in sum must not be shared with
// other lists.
func addResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// raiseResources sets each resource in list to at least its quantity in floor.
func raiseResources(list, floor corev1.ResourceList) {
	for name, quantity := range floor {
		if known, ok := list[name]; !ok || quantity.Cmp(known) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}

// isNodeResource reports whether the resource is a node resource: cpu, memory, ephemeral storage, pods,
// or a resource that the Kubernetes scheduler calls a scalar resource.
func isNodeResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		isExtended(name)
}

// isExtended reports whether the resource is an extended resource: it has a domain, is
// not a quota name, and would be a valid quota name with the prefix "requests.".
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(content.IsLabelKey(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
