package aggregated

import (
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// newScheme returns a scheme with the types of the server. The API group has only one version. So
// the same Go types are also the internal version, and decoded objects need no conversion.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", clusterv1alpha1.GroupVersion, err)
	}
	scheme.AddKnownTypes(clusterv1alpha1.InternalGroupVersion,
		&clusterv1alpha1.Cluster{}, &clusterv1alpha1.ClusterList{}, &clusterv1alpha1.ClusterProxyOptions{})
	if err := scheme.SetVersionPriority(clusterv1alpha1.GroupVersion); err != nil {
		return nil, fmt.Errorf("registering %s: %w", clusterv1alpha1.GroupVersion, err)
	}
	if err := scheme.AddConversionFunc((*url.Values)(nil), (*clusterv1alpha1.ClusterProxyOptions)(nil), decodeProxyOptions); err != nil {
		return nil, fmt.Errorf("registering the options of clusters/proxy: %w", err)
	}

	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// decodeProxyOptions decodes the options of clusters/proxy from a query.
func decodeProxyOptions(from, into any, _ conversion.Scope) error {
	query, ok := from.(*url.Values)
	if !ok {
		return fmt.Errorf("decoding proxy options: got a %T", from)
	}
	options, ok := into.(*clusterv1alpha1.ClusterProxyOptions)
	if !ok {
		return fmt.Errorf("decoding proxy options into a %T", into)
	}
	options.Path = query.Get("path")
	return nil
}
