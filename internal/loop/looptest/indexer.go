package looptest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Indexer adds the indexes of a controller to a fake client.
type Indexer struct{ *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (i Indexer) IndexField(_ context.Context, object client.Object, name string, keys client.IndexerFunc) error {
	i.WithIndex(object, name, keys)
	return nil
}
