package servedkinds

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery contains the results of discovering a server's groups. Resources contains the lists that
// were read, by group version. Failed contains the group versions that could not be read.
type Discovery struct {
	Groups    *metav1.APIGroupList
	Resources map[schema.GroupVersion]*metav1.APIResourceList
	Failed    map[schema.GroupVersion]error
}

// ServedVersions returns the versions in which the server serves the kind, in the server's order. The
// kind is NotServed only if the groups are known, every version of its group was read, and no version
// contains the kind. The server may still store objects of a kind that is not served. The kind is Unknown if a
// version of its group could not be read and no other version contains it.
func (d Discovery) ServedVersions(kind schema.GroupKind) ([]string, Availability) {
	if d.Groups == nil || len(d.Groups.Groups) == 0 {
		return nil, Unknown
	}
	var versions []string
	complete := true
	for _, version := range d.versionsOfGroup(kind.Group) {
		list := d.Resources[version]
		switch {
		case d.Failed[version] != nil || list == nil:
			complete = false
		case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Kind == kind.Kind && !strings.Contains(r.Name, "/")
		}):
			versions = append(versions, version.Version)
		}
	}
	for version := range d.Failed {
		complete = complete && version.Group != kind.Group
	}
	switch {
	case len(versions) > 0:
		return versions, Served
	case !complete:
		return nil, Unknown
	default:
		return nil, NotServed
	}
}

// UnreadVersions returns the group's versions whose resources are still to be read. Versions for which
// a read failed are not included.
func (d Discovery) UnreadVersions(group string) []schema.GroupVersion {
	return slices.DeleteFunc(d.versionsOfGroup(group), func(version schema.GroupVersion) bool {
		return d.Resources[version] != nil || d.Failed[version] != nil
	})
}

func (d Discovery) versionsOfGroup(name string) []schema.GroupVersion {
	var versions []schema.GroupVersion
	if d.Groups == nil {
		return nil
	}
	for _, group := range d.Groups.Groups {
		if group.Name != name {
			continue
		}
		for _, version := range group.Versions {
			versions = append(versions, schema.GroupVersion{Group: name, Version: version.Version})
		}
	}
	return versions
}

// IsObjectNotFound reports whether the error proves that a server serves the kind but has no object with
// the given name. A server that does not serve the path also returns NotFound, but this does not prove
// that the object does not exist. Such a response either is not a Kubernetes Status, or does not
// contain the object's name.
func IsObjectNotFound(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
