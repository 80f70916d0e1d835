package servedkinds

import (
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DiscoveryClient sends discovery requests to an API server.
type DiscoveryClient interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error)
}

// Lookup returns whether an API server serves the kind. If the result is Unknown, the returned error is
// the cause. The error is nil if the result is Unknown because the API server listed no resources for
// the kind's group version.
func Lookup(api DiscoveryClient, kind schema.GroupVersionKind) (Availability, error) {
	version := kind.GroupVersion()
	resources, err := api.ServerResourcesForGroupVersion(version.String())
	var groups *metav1.APIGroupList
	if apierrors.IsNotFound(err) {
		listed, _, failed, failure := api.GroupsAndMaybeResources()
		if _, stale := failed[version]; failure == nil && !stale {
			groups = listed
		}
	}
	availability := KindAvailability(kind, groups, resources, err)
	if availability == Unknown && err != nil {
		return availability, fmt.Errorf("listing the kinds of %s: %w", version, err)
	}
	return availability, nil
}

// LookupGroup returns the versions in which an API server serves the kind. If the result is Unknown,
// the returned error is the cause.
func LookupGroup(api DiscoveryClient, kind schema.GroupKind) ([]string, Availability, error) {
	groups, resources, failed, err := api.GroupsAndMaybeResources()
	if err != nil {
		return nil, Unknown, fmt.Errorf("listing the groups: %w", err)
	}
	found := Discovery{Groups: groups, Resources: map[schema.GroupVersion]*metav1.APIResourceList{}, Failed: maps.Clone(failed)}
	maps.Copy(found.Resources, resources)
	if found.Failed == nil {
		found.Failed = map[schema.GroupVersion]error{}
	}
	// API servers without aggregated discovery list the groups without their resources, so each
	// version's resources must be read separately.
	for _, version := range found.UnreadVersions(kind.Group) {
		list, err := api.ServerResourcesForGroupVersion(version.String())
		if err != nil {
			found.Failed[version] = err
			continue
		}
		found.Resources[version] = list
	}
	versions, availability := found.ServedVersions(kind)
	if availability != Unknown {
		return versions, availability, nil
	}
	for version, failure := range found.Failed {
		if version.Group == kind.Group {
			return nil, availability, fmt.Errorf("listing the kinds of %s: %w", version, failure)
		}
	}
	return nil, availability, errNoGroups
}

var errNoGroups = errors.New("the server lists no group")
