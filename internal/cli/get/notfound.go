package get

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// objectID identifies an object in the same way as the errors of API servers.
type objectID struct {
	resource schema.GroupResource
	name     string
}

// dropNotFoundErrors removes errors about missing objects and unknown types from each result if
// another target has the object or the type, because not every cluster needs to have it. If no
// target has it, the error stays.
func dropNotFoundErrors(results []targetResult) {
	found, served := map[objectID]bool{}, false
	for _, a := range results {
		served = served || a.err == nil || len(a.infos) > 0
		for _, info := range a.infos {
			if info.Mapping != nil {
				found[objectID{info.Mapping.Resource.GroupResource(), info.Name}] = true
			}
			// A target without the namespace returns an error about the namespace for each object,
			// so record that another target has the namespace.
			found[objectID{corev1.Resource("namespaces"), info.Namespace}] = true
		}
	}
	for i := range results {
		results[i].err = utilerrors.FilterOut(results[i].err, func(err error) bool {
			if isUnknownType(err) {
				return served
			}
			missing, ok := notFoundObject(err)
			return ok && found[missing]
		})
	}
}

// notFoundObject returns the object that the error reports as not found.
func notFoundObject(err error) (objectID, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return objectID{}, false
	}
	details := status.Status().Details
	return objectID{schema.GroupResource{Group: details.Group, Resource: details.Kind}, details.Name}, details.Name != ""
}

// isUnknownType reports whether an error means that the target does not serve the type. It
// compares the text, because the request builder of kubectl returns only a text.
func isUnknownType(err error) bool {
	return strings.HasPrefix(err.Error(), "the server doesn't have a resource type ")
}

// isNotFound reports whether an error means that the target does not have the object or its type.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || isUnknownType(err) }
