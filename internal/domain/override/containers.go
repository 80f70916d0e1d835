package override

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// containersOf is where the containers of a kind are listed; nil for kinds that
// have none as far as image, command and args overriders are concerned. Init
// containers are never touched; an image predicate reaches them.
func containersOf(kind string) pointer {
	switch kind {
	case "Pod":
		return pointer{"spec", "containers"}
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job":
		return pointer{"spec", "template", "spec", "containers"}
	default:
		return nil
	}
}

// eachContainer visits the containers of a workload. The visitor may change them.
func eachContainer(manifest *unstructured.Unstructured, visit func(path pointer, container map[string]any) error) error {
	path := containersOf(manifest.GetKind())
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
		return mismatchf(path.String(), "", "expected a list of containers, found %s", describe(listed))
	}
	for i := range containers {
		at := append(slices.Clone(path), strconv.Itoa(i))
		container, ok := containers[i].(map[string]any)
		if !ok {
			return mismatchf(at.String(), "", "expected a container, found %s", describe(containers[i]))
		}
		if err := visit(at, container); err != nil {
			return err
		}
	}
	return nil
}
