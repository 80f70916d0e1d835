package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// podReader reads what one pod needs.
type podReader struct {
	withPriorityClass bool
}

func (r podReader) requirements(template *corev1.PodTemplateSpec) *workv1alpha2.ReplicaRequirements {
	requirements := PodRequirements(template)
	if requirements != nil && r.withPriorityClass {
		requirements.PriorityClassName = template.Spec.PriorityClassName
	}
	return requirements
}

// PodRequirements returns what one pod of a template needs of its node: the
// resources that the Kubernetes scheduler reserves for it, and on which nodes it
// may run. It is nil for a pod that runs anywhere and requests nothing.
// Namespace and PriorityClassName are left empty. The template is not modified,
// but the answer may share parts of it.
func PodRequirements(template *corev1.PodTemplateSpec) *workv1alpha2.ReplicaRequirements {
	claim := nodeClaim(&template.Spec)
	request := podRequest(&template.Spec)
	if claim == nil && len(request) == 0 {
		return nil
	}
	return &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request}
}

func nodeClaim(spec *corev1.PodSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity == nil && len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0 {
		return nil
	}
	return claim
}

// podRequest returns what a pod requests at the peak of its life, per resource:
// while it runs, the sum of all containers and sidecars; while it starts, an
// init container and the sidecars started before it. What the pod requests as a
// whole goes before what its containers do. The overhead of the runtime comes on
// top. Resources that no node accounts for, and zeros, are left
// out. It is nil when nothing remains.
func podRequest(spec *corev1.PodSpec) corev1.ResourceList {
	running, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		add(running, containerRequest(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		request := containerRequest(&spec.InitContainers[i])
		if isSidecar(&spec.InitContainers[i]) {
			add(running, request)
			add(sidecars, request)
			continue
		}
		add(request, sidecars)
		raise(peak, request)
	}
	raise(running, peak)
	claimWhole(running, spec.Resources)
	add(running, spec.Overhead)

	for name, quantity := range running {
		if quantity.Sign() <= 0 || !isCounted(name) {
			delete(running, name)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running
}

// claimWhole puts what a pod requests as a whole in the place of what its
// containers request together. A limit of the whole is a request where there is no
// other.
func claimWhole(request corev1.ResourceList, whole *corev1.ResourceRequirements) {
	if whole == nil {
		return
	}
	for name, quantity := range whole.Requests {
		if isShared(name) {
			request[name] = quantity.DeepCopy()
		}
	}
	for name, quantity := range whole.Limits {
		if _, ok := request[name]; !ok && isShared(name) {
			request[name] = quantity.DeepCopy()
		}
	}
}

// isShared reports whether a pod can request the resource as a whole.
func isShared(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isSidecar reports whether an init container keeps running beside the others.
func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containerRequest returns a new list of the requests; a resource without a
// request is requested at its limit, as the API server defaults it.
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

// add adds what is listed in more to sum, whose quantities are not shared.
func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// raise lifts each resource in list to at least its quantity in floor.
func raise(list, floor corev1.ResourceList) {
	for name, quantity := range floor {
		if known, ok := list[name]; !ok || quantity.Cmp(known) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}

// isCounted reports whether nodes account for the resource: cpu, memory,
// ephemeral storage, pods, and what the scheduler calls scalar resources.
func isCounted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		isExtended(name)
}

// isExtended reports whether the resource is one that somebody other than
// Kubernetes defined: it has a domain, is no quota key, and could be a quota key
// with "requests." in front.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(content.IsLabelKey(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
