package watches

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/servedkinds"
)

// Server is the connection to one API server.
type Server struct {
	// Source returns the source of a query. The error matches meta.IsNoMatchError if the kind does
	// not seem to be served.
	Source func(Query) (*Source, error)
	// Availability asks discovery, without a cache, whether the API server serves a kind.
	Availability func(schema.GroupVersionKind) (servedkinds.Availability, error)
	// ForgetKinds drops cached discovery results. It is called after the API server did not find a
	// kind, because the kind may come back as another resource. It may be nil.
	ForgetKinds func()
	// Bounds limits the responses of the API server and the objects of each query. nil sets no limits.
	Bounds *bounds.MemberBounds
}

// NewServer returns a Server that looks up kinds with a mapper and sends requests with a dynamic
// client. The discovery client must not cache.
//
// limits may be nil.
func NewServer(objects dynamic.Interface, mapper *Mapper, discovery servedkinds.DiscoveryClient, limits *bounds.MemberBounds) *Server {
	return &Server{
		Bounds: limits,
		Source: func(query Query) (*Source, error) {
			mapping, err := mapper.RESTMapping(query.Kind.GroupKind(), query.Kind.Version)
			if err != nil {
				return nil, fmt.Errorf("looking up %s: %w", query.Kind, err)
			}
			resource := objects.Resource(mapping.Resource)
			return NewSource(resource, mapping.Resource.GroupResource().String(), query.LabelSelector, query.FieldSelector, limits), nil
		},
		ForgetKinds: func() {
			if err := mapper.Reset(); err != nil {
				klog.Background().Error(err, "Resetting the resources of kinds")
			}
		},
		Availability: func(kind schema.GroupVersionKind) (servedkinds.Availability, error) {
			return servedkinds.Lookup(discovery, kind)
		},
	}
}
