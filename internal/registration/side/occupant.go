package side

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

// ownContent is what every namespace holds, and what the cluster says about others.
var ownContent = map[string][]string{
	"ServiceAccount": {"default"},
	"ConfigMap":      {"kube-root-ca.crt"},
}

// Occupant names an object in a namespace that is not there by itself, or nothing.
// What is being deleted does not count. A namespace whose content cannot all be seen
// counts as used: it goes with all that it holds.
func (s *Side) Occupant(ctx context.Context, namespace string) (string, error) {
	kinds, err := s.Kinds()
	if err != nil {
		return "", s.Explain("looking for the content of", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, err)
	}
	ctx = context.WithValue(ctx, unasked{}, true)
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.API.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize)); err != nil {
			return "", s.Explain("looking for the content of", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, fmt.Errorf("listing %s: %w", kind.Kind, err))
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.DeletionTimestamp.IsZero() && !slices.Contains(ownContent[kind.Kind], object.Name) {
				return fmt.Sprintf("%s %s/%s", kind.Kind, namespace, object.Name), nil
			}
		}
	}
	return "", nil
}

// namespacedKinds are the kinds of which somebody can put objects into a namespace, all
// that the API server knows. The mapper learns of them.
func namespacedKinds(config *rest.Config, mapper *meta.DefaultRESTMapper) ([]schema.GroupVersionKind, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	served, err := asked.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("listing the kinds that are served: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, served) {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("listing the kinds that are served: %w", err)
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
