package admission

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	rules "karmada.io/karmada/internal/domain/admission"
)

// listTimeout limits a request that lists the names of clusters.
const listTimeout = 5 * time.Second

// resourceDiscovery discovers the served resources. Discovery clients implement the interface.
type resourceDiscovery interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// ServedKinds returns a function that discovers the kinds of a control plane; see
// rules.Rules.Served. If the discovery of an API group fails, its kinds are not validated.
func ServedKinds(karmada resourceDiscovery) func(schema.GroupVersionKind) *rules.ServedKinds {
	served := &cachedValue[*rules.ServedKinds]{fetch: func() (*rules.ServedKinds, error) {
		groups, lists, err := karmada.ServerGroupsAndResources()
		var partial *discovery.ErrGroupDiscoveryFailed
		if err != nil && !errors.As(err, &partial) {
			return nil, err
		}
		var failedGroups []schema.GroupVersion
		if partial != nil {
			failedGroups = slices.Collect(maps.Keys(partial.Groups))
		}
		return rules.NewServedKinds(groups, lists, failedGroups), nil
	}}
	return func(kind schema.GroupVersionKind) *rules.ServedKinds {
		value, known := served.get(func(s *rules.ServedKinds) bool { return s.Has(kind) })
		if !known {
			return nil
		}
		return value
	}
}

// StoredClusters returns a function that lists the names of the clusters of a control plane;
// see rules.Rules.Clusters.
func StoredClusters(karmada dynamic.Interface) func(wanted []string) sets.Set[string] {
	resource := clusterv1alpha1.GroupVersion.WithResource("clusters")
	names := &cachedValue[sets.Set[string]]{fetch: func() (sets.Set[string], error) {
		ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
		defer cancel()
		// A list with the resource version 0 is served from the watch cache.
		list, err := karmada.Resource(resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		found := sets.New[string]()
		for i := range list.Items {
			found.Insert(list.Items[i].GetName())
		}
		return found, nil
	}}
	return func(wanted []string) sets.Set[string] {
		value, known := names.get(func(s sets.Set[string]) bool { return s.HasAll(wanted...) })
		if !known {
			return nil
		}
		return value
	}
}
