package feed

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// ID identifies an object in a sink. A UID is unique only within one cluster, because a cluster that
// was restored from another cluster's backup can have the same UIDs.
type ID struct {
	Cluster string
	UID     types.UID
}

// IDOf returns the object's ID. For an object without a UID, it consists of the namespace and name.
func IDOf(object *objectcache.Object) ID {
	uid := object.UID()
	if uid == "" {
		uid = types.UID("name:" + object.Namespace() + "/" + object.Name())
	}
	return ID{Cluster: object.Source().Cluster, UID: uid}
}

// Change stores Object, or removes the object with the given ID if Object is nil.
type Change struct {
	ID     ID
	Source objectcache.Source
	Object *objectcache.Object
}

// Sink stores copies of the cached objects, for example in a full-text index or in OpenSearch. Apply
// and Stored are called concurrently for different kinds, but not for the same kind. Each call must
// return within a limited time.
type Sink interface {
	// Name returns the sink's name for log lines and errors.
	Name() string
	// Wants reports whether the sink stores the source's objects.
	Wants(source objectcache.Source) bool
	// Apply stores and removes objects. It must be idempotent. After an error, the feed waits for a
	// backoff and then compares the sink with the cache. Apply must not return an error for an object
	// that the sink always rejects. The sink reports such objects itself.
	Apply(ctx context.Context, changes []Change) error
	// Stored calls yield with the ID and resourceVersion of each of the source's stored objects, and
	// returns yield's error. yield may call Apply. An empty resourceVersion makes the feed store the
	// object again.
	Stored(ctx context.Context, source objectcache.Source, yield func(id ID, resourceVersion string) error) error
	// Sources returns the sources whose objects are stored, including those from earlier runs. Only
	// their cluster and kind are required. The feed removes sources that the cache does not have, so a
	// sink must not return sources that belong to other owners.
	Sources(ctx context.Context) ([]objectcache.Source, error)
}

// Notifier is a Sink that reports changes that the feed did not make.
type Notifier interface {
	// Changed returns a channel that is closed when stored objects are lost, or when Wants changes.
	// Call it again to get the channel for the next change.
	Changed() <-chan struct{}
}
