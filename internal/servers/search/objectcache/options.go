package objectcache

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/loop"
)

// The defaults of Options.
const (
	DefaultMaxObjectBytes   = 16 << 20
	DefaultMaxSourceObjects = 500_000
	DefaultMaxSourceBytes   = 512 << 20
	DefaultMaxClusterBytes  = 512 << 20
	DefaultMaxBytes         = 4 << 30
	DefaultLogEvents        = 32768
	DefaultLogBytes         = 16 << 20
	DefaultPageSize         = 200
)

// Members opens connections to members. *member.Clusters implements it.
type Members interface {
	GetForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	CloseMember(name string)
}

// Options configure a Cache.
type Options struct {
	// Karmada reads Clusters and ResourceRegistries from a cache of the control plane. Only Run needs
	// it.
	Karmada client.Reader
	// Members opens connections to members. Only Run needs it.
	Members Members

	// MaxObjectBytes limits the JSON of one object. The default is 16 MiB.
	MaxObjectBytes int64
	// MaxSourceObjects limits the objects of one kind in one cluster. The default is 500 000.
	MaxSourceObjects int
	// MaxSourceBytes limits the memory of the objects of one kind in one cluster. The default is 512
	// MiB.
	MaxSourceBytes int64
	// MaxClusterBytes limits the memory of the objects of all kinds in one cluster. The default is 512
	// MiB.
	MaxClusterBytes int64
	// MaxBytes limits the memory of all objects. The default is 4 GiB.
	MaxBytes int64
	// PageSize is the number of objects that are requested from a member at once. The default is 200.
	PageSize int64
	// Retry configures the delays before a failed list or watch is retried. The default is that of
	// controllers: 5 ms to one minute.
	Retry loop.Backoff

	// LogEvents limits the events that the log of a kind holds for its followers. The default is
	// 32768.
	LogEvents int
	// LogBytes limits the memory of the replaced and deleted objects that the log of a kind holds. The
	// default is 16 MiB.
	LogBytes int64
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// withDefaults returns options in which every value is set.
func (o Options) withDefaults() Options {
	o.MaxObjectBytes = cmp.Or(o.MaxObjectBytes, DefaultMaxObjectBytes)
	o.MaxSourceObjects = cmp.Or(o.MaxSourceObjects, DefaultMaxSourceObjects)
	o.MaxSourceBytes = cmp.Or(o.MaxSourceBytes, DefaultMaxSourceBytes)
	o.MaxClusterBytes = cmp.Or(o.MaxClusterBytes, DefaultMaxClusterBytes)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.PageSize = cmp.Or(o.PageSize, DefaultPageSize)
	o.Retry = cmp.Or(o.Retry, loop.DefaultBackoff())
	o.LogEvents = cmp.Or(o.LogEvents, DefaultLogEvents)
	o.LogBytes = cmp.Or(o.LogBytes, DefaultLogBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// boundError reports that the objects of a member exceed a limit of Options.
type boundError struct {
	what  string
	limit int64
	// isShared is true if the limit applies to all members together.
	isShared bool
}

func (b *boundError) Error() string {
	if b.isShared {
		return fmt.Sprintf("all members together have more than the limit of %d %s: these objects are not cached", b.limit, b.what)
	}
	return fmt.Sprintf("the member sends more than the limit of %d %s: these objects are not cached", b.limit, b.what)
}

// Unwrap makes the error match a *bounds.ExceededError, so that the list is rarely repeated.
func (b *boundError) Unwrap() error { return &bounds.ExceededError{Detail: b.what} }

// limitSource returns an error if the objects of a source exceed the limits.
func (o Options) limitSource(objects int, bytes int64) error {
	if objects > o.MaxSourceObjects {
		return &boundError{what: "objects of one kind", limit: int64(o.MaxSourceObjects)}
	}
	if bytes > o.MaxSourceBytes {
		return &boundError{what: "bytes in objects of one kind", limit: o.MaxSourceBytes}
	}
	return nil
}
