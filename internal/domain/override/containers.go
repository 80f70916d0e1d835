package override

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/jsonedit"
	"karmada.io/karmada/internal/domain/policy"
)

// containersPath returns the path of the containers in objects of the kind, or nil if image, command and
// args overriders do not support the kind.
func containersPath(kind string) jsonedit.Pointer {
	switch kind {
	case "Pod":
		return jsonedit.Pointer{"spec", "containers"}
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job":
		return jsonedit.Pointer{"spec", "template", "spec", "containers"}
	default:
		return nil
	}
}

// unsupportedKind returns a message that container overriders do not support the manifest's kind. It
// returns an empty string if the manifest has no containers, because a policy may select many kinds.
func unsupportedKind(manifest *unstructured.Unstructured) string {
	for _, path := range []jsonedit.Pointer{
		{"spec", "containers"}, {"spec", "template", "spec", "containers"}, {"spec", "jobTemplate", "spec", "template", "spec", "containers"},
	} {
		if containers, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...); err == nil && found && containers != nil {
			return fmt.Sprintf("containers of kind %s are not changed; use a plaintext overrider for a path below %s", manifest.GetKind(), path)
		}
	}
	return ""
}

func namespacedName(manifest *unstructured.Unstructured) string {
	return policy.Claim{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}.String()
}

// forEachContainer calls visit, which may modify the container, for each of the workload's containers.
func forEachContainer(manifest *unstructured.Unstructured, visit func(path jsonedit.Pointer, container map[string]any) error) error {
	path := containersPath(manifest.GetKind())
	if path == nil {
		return nil
	}
	listed, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
	if err != nil {
		return &mismatchError{path: path.String(), err: err}
	}
	if !found || listed == nil {
		return nil
	}
	containers, ok := listed.([]any)
	if !ok {
		return mismatchf(path.String(), "", "expected a list of containers, found %s", jsonedit.TypeName(listed))
	}
	for i := range containers {
		containerPath := append(slices.Clone(path), strconv.Itoa(i))
		container, ok := containers[i].(map[string]any)
		if !ok {
			return mismatchf(containerPath.String(), "", "expected a container, found %s", jsonedit.TypeName(containers[i]))
		}
		if err := visit(containerPath, container); err != nil {
			return err
		}
	}
	return nil
}
