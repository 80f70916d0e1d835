package search

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// newScheme returns a scheme with the types of the server. The API group has only one version. So
// the same Go types are also the internal version, and decoded objects need no conversion.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := searchv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", searchv1alpha1.GroupVersion, err)
	}
	scheme.AddKnownTypes(searchv1alpha1.InternalGroupVersion,
		&searchv1alpha1.ResourceRegistry{}, &searchv1alpha1.ResourceRegistryList{}, &searchv1alpha1.Search{}, &searchv1alpha1.Proxying{})
	if err := scheme.SetVersionPriority(searchv1alpha1.GroupVersion); err != nil {
		return nil, fmt.Errorf("registering %s: %w", searchv1alpha1.GroupVersion, err)
	}
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}
