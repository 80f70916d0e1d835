package override

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/jsonpointer"
)

// containersPath returns the path of the containers of a kind. It returns nil for kinds that image,
// command and args overriders do not support. The path does not include init containers, but an
// image overrider with a predicate can change them.
func containersPath(kind string) jsonpointer.Pointer {
	switch kind {
	case "Pod":
		return jsonpointer.Pointer{"spec", "containers"}
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job":
		return jsonpointer.Pointer{"spec", "template", "spec", "containers"}
	default:
		return nil
	}
}

// forEachContainer calls visit for every container of a workload. visit may change the container.
func forEachContainer(manifest *unstructured.Unstructured, visit func(path jsonpointer.Pointer, container map[string]any) error) error {
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
		return mismatchf(path.String(), "", "expected a list of containers, found %s", jsonpointer.TypeName(listed))
	}
	for i := range containers {
		containerPath := append(slices.Clone(path), strconv.Itoa(i))
		container, ok := containers[i].(map[string]any)
		if !ok {
			return mismatchf(containerPath.String(), "", "expected a container, found %s", jsonpointer.TypeName(containers[i]))
		}
		if err := visit(containerPath, container); err != nil {
			return err
		}
	}
	return nil
}
