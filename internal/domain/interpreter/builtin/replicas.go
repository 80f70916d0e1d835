package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// workloadReplicas returns the replicas and requirements of kinds with spec.replicas and spec.template. A
// missing number of replicas counts as 0, because the API server has already set the default.
func (p podReader) workloadReplicas(
	_ context.Context, template *unstructured.Unstructured,
) (int32, *workv1alpha2.ReplicaRequirements, error) {
	replicas, err := integerOrZero(template.Object, "spec", "replicas")
	if err != nil {
		return 0, nil, err
	}
	requirements, err := p.templateRequirements(template)
	return saturateInt32(replicas), requirements, err
}

// templateRequirements returns the requirements of the Pod template in spec.template.
func (p podReader) templateRequirements(template *unstructured.Unstructured) (*workv1alpha2.ReplicaRequirements, error) {
	pod, err := typed[corev1.PodTemplateSpec](template.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	return p.requirements(&pod), nil
}

// reviseReplicas returns the rule that sets the number of replicas at path. It does not change a template
// without this field.
func reviseReplicas(path ...string) func(context.Context, *unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
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
