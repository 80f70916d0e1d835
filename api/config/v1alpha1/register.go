package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the types in this package.
const GroupName = "config.karmada.io"

// GroupVersion identifies this version of the group.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource qualifies a plural resource name with the group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ResourceInterpreterCustomization{},
		&ResourceInterpreterCustomizationList{},
		&ResourceInterpreterWebhookConfiguration{},
		&ResourceInterpreterWebhookConfigurationList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
