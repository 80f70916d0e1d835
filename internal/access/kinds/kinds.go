// Package kinds answers "what does an API server say about a kind now?": it asks
// discovery without a cache.
package kinds

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/served"
)

// Discovery is what is asked of an API server.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error)
}

// Ask returns what a server says about a kind. The error says why the answer is
// Unknown; it is nil for an empty answer.
func Ask(api Discovery, kind schema.GroupVersionKind) (served.Answer, error) {
	version := kind.GroupVersion()
	resources, err := api.ServerResourcesForGroupVersion(version.String())
	var groups *metav1.APIGroupList
	if apierrors.IsNotFound(err) {
		listed, _, failed, failure := api.GroupsAndMaybeResources()
		if _, stale := failed[version]; failure == nil && !stale {
			groups = listed
		}
	}
	answer := served.Of(kind, groups, resources, err)
	if answer == served.Unknown && err != nil {
		return answer, fmt.Errorf("listing the kinds of %s: %w", version, err)
	}
	return answer, nil
}
