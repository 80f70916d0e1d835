package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	firstImage  = "registry.example/web:1"
	secondImage = "registry.example/web:2"
)

var policyResource = schema.GroupVersionResource{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "propagationpolicies"}

// policyFor returns a policy that propagates every Deployment of a namespace to the
// members, each with all replicas. It does not use Karmada's Go types, because the program
// must also measure other versions of Karmada.
func policyFor(namespace string, members []string) *unstructured.Unstructured {
	names := make([]any, 0, len(members))
	for _, member := range members {
		names = append(names, member)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policyResource.GroupVersion().String(),
		"kind":       "PropagationPolicy",
		"metadata":   map[string]any{"name": "everywhere", "namespace": namespace},
		"spec": map[string]any{
			"resourceSelectors": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}},
			"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": names}},
		},
	}}
}

func templateFor(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: firstImage}}},
			},
		},
	}
}

// numberedNames returns count names of templates with a common prefix.
func numberedNames(prefix string, count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return list
}

// condition is a condition on a Deployment. The Deployment is nil while it does not exist.
type condition struct {
	description string
	holds       func(*appsv1.Deployment) bool
}

var (
	isPresent = condition{"exists", func(d *appsv1.Deployment) bool { return d != nil }}
	isAbsent  = condition{"does not exist", func(d *appsv1.Deployment) bool { return d == nil }}
)

func isReady(replicas int32) condition {
	return condition{fmt.Sprintf("has %d ready replicas", replicas), func(d *appsv1.Deployment) bool {
		return d != nil && d.Status.ReadyReplicas == replicas
	}}
}

func hasImage(image string) condition {
	return condition{"has image " + image, func(d *appsv1.Deployment) bool {
		return d != nil && d.Spec.Template.Spec.Containers[0].Image == image
	}}
}

// isRolledOut is met when the status of a template shows that all replicas run a new image.
func isRolledOut(image string, replicas int32) condition {
	return condition{"has rolled out " + image, func(d *appsv1.Deployment) bool {
		return hasImage(image).holds(d) && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == replicas && d.Status.ReadyReplicas == replicas
	}}
}
