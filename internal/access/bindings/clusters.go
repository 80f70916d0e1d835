package bindings

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
)

// ClusterIndex is the name of the index with the values of ClustersOf.
const ClusterIndex = "bindings/cluster"

// AddClusterIndex adds the index that ListByCluster needs to the cache of a process. It must be called once
// for each cache, before the cache starts. All callers of ListByCluster share the index.
func AddClusterIndex(indexer client.FieldIndexer) error {
	for _, namespaced := range []bool{true, false} {
		// The context is not used: before the start the call does not wait.
		if err := indexer.IndexField(context.Background(), binding.New(namespaced), ClusterIndex, ClustersOf); err != nil {
			return fmt.Errorf("indexing bindings by cluster: %w", err)
		}
	}
	return nil
}

// ClustersOf returns the clusters to which a binding is scheduled or from which it is evicted,
// each once.
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

// ListByCluster returns the bindings of one scope that are scheduled to a cluster or evicted from
// it.
func ListByCluster(ctx context.Context, from client.Reader, namespaced bool, cluster string) ([]binding.Object, error) {
	found, err := List(ctx, from, namespaced, client.MatchingFields{ClusterIndex: cluster})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return found, nil
}
