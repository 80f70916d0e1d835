package feed

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// ID identifies an object in a sink. A UID is unique only within one cluster, because a restored cluster can
// have the UIDs of another one.
type ID struct {
	Cluster string
	UID     types.UID
}

// IDOf returns the ID of an object. Without a UID, it consists of the namespace and name.
func IDOf(object *objectcache.Object) ID {
	uid := object.UID()
	if uid == "" {
		uid = types.UID("name:" + object.Namespace() + "/" + object.Name())
	}
	return ID{Cluster: object.Source().Cluster, UID: uid}
}

// Change stores Object, or removes the object with ID if Object is nil.
type Change struct {
	ID     ID
	Source objectcache.Source
	Object *objectcache.Object
}

// Sink stores copies of the cached objects, for example in a full-text index or in OpenSearch. Apply and
// Stored are called concurrently for different kinds, but not for the same kind. Each call must return in
// bounded time.
type Sink interface {
	// Name returns the name of the sink for log lines and errors.
	Name() string
	// Wants reports whether the sink stores the objects of a source.
	Wants(source objectcache.Source) bool
	// Apply stores and removes objects. It is idempotent. After an error, the feed compares the sink with
	// the cache after a backoff. Apply does not return an error for an object that the sink always
	// rejects; the sink reports such objects itself.
	Apply(ctx context.Context, changes []Change) error
	// Stored calls yield with the ID and resourceVersion of each stored object of a source, and returns the
	// error of yield. yield may call Apply. An empty resourceVersion makes the feed store the object again.
	Stored(ctx context.Context, source objectcache.Source, yield func(id ID, resourceVersion string) error) error
	// Sources returns the sources whose objects are stored, including those of earlier runs. Only cluster
	// and kind are required. The feed removes sources that the cache does not have, so a sink must not
	// return sources of other owners.
	Sources(ctx context.Context) ([]objectcache.Source, error)
}

// Notifier is a Sink that reports changes that the feed did not make.
type Notifier interface {
	// Changed returns a channel that is closed when stored objects are lost, or when Wants changes. The
	// next call returns the channel for the next change.
	Changed() <-chan struct{}
}
