package v1alpha1

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InternalGroupVersion is the version in which the aggregated API server holds
// objects in memory. The Go types are those of v1alpha1.
var InternalGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

// AddInternalToScheme registers what a server of the group needs: the types of
// AddToScheme, the same types as the internal version, and the reading of
// ClusterProxyOptions from a query. With one Go type for both versions a
// conversion sets apiVersion and kind and copies nothing.
func AddInternalToScheme(scheme *runtime.Scheme) error {
	if err := AddToScheme(scheme); err != nil {
		return err
	}
	addKnownTypes(scheme, InternalGroupVersion)
	if err := scheme.SetVersionPriority(GroupVersion); err != nil {
		return fmt.Errorf("ordering the versions of %s: %w", GroupName, err)
	}
	err := scheme.AddConversionFunc((*url.Values)(nil), (*ClusterProxyOptions)(nil),
		func(query, options any, _ conversion.Scope) error {
			options.(*ClusterProxyOptions).Path = query.(*url.Values).Get("path")
			return nil
		})
	if err != nil {
		return fmt.Errorf("registering the proxy options of %s: %w", GroupName, err)
	}
	return nil
}
