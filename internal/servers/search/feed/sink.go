package feed

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// ID identifies an object in a sink. UIDs are unique within one cluster only, because a restored
// cluster can have the UIDs of another one.
type ID struct {
	Cluster string
	UID     types.UID
}

// IDOf returns the ID of an object. An object without a UID gets an ID of its namespace and name.
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

// Sink stores copies of the cached objects, for example a full-text index or OpenSearch. Apply and
// Stored are called in parallel for different kinds, never for the same kind. Each call must end in
// bounded time.
type Sink interface {
	// Name returns the name of the sink for log lines and errors.
	Name() string
	// Wants reports whether the sink stores the objects of a source.
	Wants(source objectcache.Source) bool
	// Apply stores and removes objects. Apply is idempotent. After an error, the feed retries with
	// backoff, and compares the sink with the cache again. An object that the sink rejects for a
	// reason that a retry does not change is no error of Apply: the sink reports it.
	Apply(ctx context.Context, changes []Change) error
	// Stored calls yield for each stored object of a source with its resourceVersion. Stored returns
	// the error of yield. yield can call Apply. An empty resourceVersion makes the feed store the
	// object again.
	Stored(ctx context.Context, source objectcache.Source, yield func(id ID, resourceVersion string) error) error
	// Sources returns the sources whose objects are stored, also from earlier runs. Only their
	// cluster and kind are needed. The feed removes those that the cache does not have, so a sink
	// must not return objects of other owners.
	Sources(ctx context.Context) ([]objectcache.Source, error)
}

// Notifier is a Sink that reports changes which the feed did not make.
type Notifier interface {
	// Changed returns a channel that is closed when stored objects were lost, or when Wants changes.
	// The next call returns the channel for the next change.
	Changed() <-chan struct{}
}
