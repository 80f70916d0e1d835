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

// listTimeout bounds a request for the names of clusters.
const listTimeout = 5 * time.Second

// resources lists what a control plane serves; a discovery client does.
type resources interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// ServedKinds asks a control plane what it serves; see rules.Rules.Served. Groups
// that do not answer are left out of the judgement.
func ServedKinds(karmada resources) func(schema.GroupVersionKind) *rules.Served {
	served := &remembered[*rules.Served]{ask: func() (*rules.Served, error) {
		groups, lists, err := karmada.ServerGroupsAndResources()
		var partial *discovery.ErrGroupDiscoveryFailed
		if err != nil && !errors.As(err, &partial) {
			return nil, err
		}
		var silent []schema.GroupVersion
		if partial != nil {
			silent = slices.Collect(maps.Keys(partial.Groups))
		}
		return rules.NewServed(groups, lists, silent), nil
	}}
	return func(kind schema.GroupVersionKind) *rules.Served {
		answer, known := served.get(func(s *rules.Served) bool { return s.Has(kind) })
		if !known {
			return nil
		}
		return answer
	}
}

// StoredClusters asks a control plane for the names of its clusters; see
// rules.Rules.Clusters.
func StoredClusters(karmada dynamic.Interface) func(wanted []string) sets.Set[string] {
	resource := clusterv1alpha1.GroupVersion.WithResource("clusters")
	names := &remembered[sets.Set[string]]{ask: func() (sets.Set[string], error) {
		ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
		defer cancel()
		// Version 0 is answered from memory.
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
		answer, known := names.get(func(s sets.Set[string]) bool { return s.HasAll(wanted...) })
		if !known {
			return nil
		}
		return answer
	}
}
