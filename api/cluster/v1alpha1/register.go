package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "cluster.karmada.io"

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource qualifies an unqualified resource name with the group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the types of this group version with the scheme, for
// clients.
func AddToScheme(scheme *runtime.Scheme) error {
	addKnownTypes(scheme, GroupVersion)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

func addKnownTypes(scheme *runtime.Scheme, gv schema.GroupVersion) {
	scheme.AddKnownTypes(gv, &Cluster{}, &ClusterList{}, &ClusterProxyOptions{})
}
