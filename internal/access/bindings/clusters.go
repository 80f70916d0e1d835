package bindings

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
)

// ClusterField of a binding is what ClustersOf tells of it.
const ClusterField = "bindings/cluster"

// Index lets OfCluster find bindings in the cache of a process. It is called once
// for each cache, before that starts: who finds bindings so shares one index.
func Index(indexer client.FieldIndexer) error {
	for _, namespaced := range []bool{true, false} {
		// The context bounds a wait that there is none of before the start.
		if err := indexer.IndexField(context.Background(), binding.New(namespaced), ClusterField, ClustersOf); err != nil {
			return fmt.Errorf("indexing bindings by cluster: %w", err)
		}
	}
	return nil
}

// ClustersOf are the clusters that a binding is scheduled to or leaves, each once.
func ClustersOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	spec := bound.BindingSpec()
	names := make([]string, 0, len(spec.Clusters)+len(spec.GracefulEvictionTasks))
	for i := range spec.Clusters {
		names = append(names, spec.Clusters[i].Name)
	}
	for i := range spec.GracefulEvictionTasks {
		names = append(names, spec.GracefulEvictionTasks[i].FromCluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OfCluster is the bindings of one scope that are scheduled to a cluster or leave it.
func OfCluster(ctx context.Context, from client.Reader, namespaced bool, cluster string) ([]binding.Object, error) {
	found, err := List(ctx, from, namespaced, client.MatchingFields{ClusterField: cluster})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return found, nil
}
