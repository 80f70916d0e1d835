package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "search.karmada.io"

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// InternalGroupVersion is the version in which karmada-search holds objects in
// memory. The server registers the Go types of this package for both
// GroupVersion and InternalGroupVersion. Because both versions have the same Go
// types, a conversion only sets apiVersion and kind, and copies nothing.
var InternalGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

// Resource qualifies an unqualified resource name with the group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the types of this group version with the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ResourceRegistry{}, &ResourceRegistryList{},
		&Search{},
		&Proxying{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
