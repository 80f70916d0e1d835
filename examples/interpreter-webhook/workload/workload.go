// Package workload interprets objects of the kind Workload (workload.example.io/v1alpha1). A
// Workload runs a number of replicas of a Pod, like a Deployment. It can be paused in a cluster.
package workload

import (
	"context"
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/pkg/webhook/interpreter"
)

// workload has the fields of a Workload that the handler reads. The handler never encodes a
// workload, because fields that are missing here would be lost.
type workload struct {
	Metadata struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32                  `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status status `json:"status"`
}

// status is the status that is collected from each cluster, and aggregated.
type status struct {
	ReadyReplicas int64 `json:"readyReplicas"`
}

// NewHandler returns a handler for all operations.
func NewHandler() interpreter.Handler {
	return interpreter.Operations{
		configv1alpha1.InterpreterOperationInterpretReplica:    reading(interpretReplica),
		configv1alpha1.InterpreterOperationInterpretComponent:  reading(interpretComponent),
		configv1alpha1.InterpreterOperationInterpretStatus:     reading(interpretStatus),
		configv1alpha1.InterpreterOperationInterpretHealth:     reading(interpretHealth),
		configv1alpha1.InterpreterOperationInterpretDependency: reading(interpretDependency),
		configv1alpha1.InterpreterOperationReviseReplica:       reviseReplica,
		configv1alpha1.InterpreterOperationRetain:              retain,
		configv1alpha1.InterpreterOperationAggregateStatus:     aggregateStatus,
	}
}

// reading returns the handler of an operation that only reads the object.
func reading(answer func(*workload, *interpreter.Response)) interpreter.HandlerFunc {
	return func(_ context.Context, request interpreter.Request) interpreter.Response {
		read := &workload{}
		if err := request.Decode(read); err != nil {
			return interpreter.Errored(http.StatusBadRequest, err)
		}
		response := interpreter.Succeeded("")
		answer(read, &response)
		return response
	}
}

func interpretReplica(w *workload, response *interpreter.Response) {
	response.Replicas = &w.Spec.Replicas
	if requests := podRequests(&w.Spec.Template.Spec); len(requests) > 0 {
		response.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: requests}
	}
}

// interpretComponent returns the only component of a Workload. Karmada asks for components instead
// of replicas if the feature gate MultiplePodTemplatesScheduling is on.
func interpretComponent(w *workload, response *interpreter.Response) {
	component := workv1alpha2.Component{Name: "workload", Replicas: w.Spec.Replicas}
	if requests := podRequests(&w.Spec.Template.Spec); len(requests) > 0 {
		component.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: requests}
	}
	response.Components = []workv1alpha2.Component{component}
}

func podRequests(pod *corev1.PodSpec) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for i := range pod.Containers {
		for name, quantity := range pod.Containers[i].Resources.Requests {
			sum := requests[name]
			sum.Add(quantity)
			requests[name] = sum
		}
	}
	return requests
}

func interpretStatus(w *workload, response *interpreter.Response) {
	raw, err := json.Marshal(w.Status)
	if err != nil {
		*response = interpreter.Errored(http.StatusInternalServerError, err)
		return
	}
	response.RawStatus = &runtime.RawExtension{Raw: raw}
}

func interpretHealth(w *workload, response *interpreter.Response) {
	response.Healthy = new(w.Status.ReadyReplicas >= int64(w.Spec.Replicas))
}

// interpretDependency returns the ConfigMaps and Secrets of the volumes.
func interpretDependency(w *workload, response *interpreter.Response) {
	add := func(kind, name string) {
		response.Dependencies = append(response.Dependencies, configv1alpha1.DependentObjectReference{
			APIVersion: "v1", Kind: kind, Namespace: w.Metadata.Namespace, Name: name,
		})
	}
	volumes := w.Spec.Template.Spec.Volumes
	for i := range volumes {
		if source := volumes[i].ConfigMap; source != nil {
			add("ConfigMap", source.Name)
		}
		if source := volumes[i].Secret; source != nil {
			add("Secret", source.SecretName)
		}
	}
}
