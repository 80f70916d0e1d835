package get

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// identity names an object as errors of API servers do.
type identity struct {
	resource schema.GroupResource
	name     string
}

// dropAbsent removes from each answer the errors about objects and types that the
// place lacks and another place has: no cluster has to have them all. What no place
// has stays an error everywhere.
func dropAbsent(answers []answer) {
	found, served := map[identity]bool{}, false
	for _, a := range answers {
		served = served || a.err == nil || len(a.infos) > 0
		for _, info := range a.infos {
			if info.Mapping != nil {
				found[identity{info.Mapping.Resource.GroupResource(), info.Name}] = true
			}
			// A place without the namespace says this of each object there.
			found[identity{corev1.Resource("namespaces"), info.Namespace}] = true
		}
	}
	for i := range answers {
		answers[i].err = utilerrors.FilterOut(answers[i].err, func(err error) bool {
			if isUnknownType(err) {
				return served
			}
			missing, ok := absentObject(err)
			return ok && found[missing]
		})
	}
}

// absentObject returns the object that an API server did not find.
func absentObject(err error) (identity, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return identity{}, false
	}
	details := status.Status().Details
	return identity{schema.GroupResource{Group: details.Group, Resource: details.Kind}, details.Name}, details.Name != ""
}

// isUnknownType reports whether a place serves no such type. The request builder of
// kubectl says so in text only.
func isUnknownType(err error) bool {
	return strings.HasPrefix(err.Error(), "the server doesn't have a resource type ")
}

// isAbsent reports whether a place lacks what was asked for.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || isUnknownType(err) }
