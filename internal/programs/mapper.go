package programs

import (
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"karmada.io/karmada/internal/access/watches"
)

// retryingMapper repeats a lookup once if discovery was incomplete. The discovery of all groups omits
// a group for a moment while the API server reads the group again, for example because an aggregated
// API server was just registered. The repeated lookup reads only the missing group version, and its
// discovery is complete.
type retryingMapper struct{ meta.RESTMapper }

// newRetryingMapper returns the mapper of a manager. It has the type of manager.Options.MapperProvider.
func newRetryingMapper(karmada *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(karmada, client)
	if err != nil {
		return nil, err
	}
	return retryingMapper{watches.NewMappingCache(mapper)}, nil
}

// RESTMapping implements meta.RESTMapper.
func (r retryingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := r.RESTMapper.RESTMapping(kind, versions...)
	if incomplete := new(apiutil.ErrResourceDiscoveryFailed); errors.As(err, &incomplete) {
		return r.RESTMapper.RESTMapping(kind, versions...)
	}
	return mapping, err
}
