package clusterclient

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultContent contains, by kind, the names of the objects that every namespace contains.
var defaultContent = map[string][]string{
	"ServiceAccount": {"default"},
	"ConfigMap":      {"kube-root-ca.crt"},
}

// FindRemainingObject returns the name of an object in the namespace, or an empty string if there is none.
// It ignores a namespace's default objects and objects that are being deleted. It returns an error if a kind
// cannot be listed, because deleting the namespace would also delete the kind's objects.
func (c *Client) FindRemainingObject(ctx context.Context, namespace string) (string, error) {
	kinds, err := c.NamespacedKinds()
	if err != nil {
		return "", c.WrapError("listing the objects of", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, err)
	}
	ctx = context.WithValue(ctx, warningsDisabled{}, true)
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.API.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize)); err != nil {
			return "", c.WrapError("listing the objects of", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
				fmt.Errorf("listing %s: %w", kind.Kind, err))
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.DeletionTimestamp.IsZero() && !slices.Contains(defaultContent[kind.Kind], object.Name) {
				return fmt.Sprintf("%s %s/%s", kind.Kind, namespace, object.Name), nil
			}
		}
	}
	return "", nil
}

// namespacedKinds returns all namespaced kinds that can be listed and deleted, and adds them to the mapper.
func namespacedKinds(config *rest.Config, mapper *meta.DefaultRESTMapper) ([]schema.GroupVersionKind, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a discovery client: %w", err)
	}
	served, err := discoveryClient.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("listing the served kinds: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, served) {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("listing the served kinds: %w", err)
		}
		for _, resource := range group.APIResources {
			if resource.Name == "events" {
				continue
			}
			kind := version.WithKind(resource.Kind)
			mapper.AddSpecific(kind, version.WithResource(resource.Name), version.WithResource(resource.SingularName), meta.RESTScopeNamespace)
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}
