package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// workloadReplicas is the rule of kinds with spec.replicas and spec.template. An
// absent number counts as 0: the API server has defaulted what users left out.
func (r podReader) workloadReplicas(_ context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	replicas, err := count(template.Object, "spec", "replicas")
	if err != nil {
		return 0, nil, err
	}
	requirements, err := r.templateRequirements(template)
	return int32Of(replicas), requirements, err
}

// templateRequirements reads spec.template.
func (r podReader) templateRequirements(template *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	pod, err := typed[corev1.PodTemplateSpec](template.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	return r.requirements(&pod), nil
}

// revise is the rule of kinds whose number of replicas is the field at path. A
// template without the field keeps the default of its API.
func revise(path ...string) func(context.Context, *unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
	return func(_ context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		_, found, err := integer(template.Object, path...)
		if err != nil {
			return nil, err
		}
		if !found {
			return template, nil
		}
		return withField(template, replicas, path...)
	}
}
