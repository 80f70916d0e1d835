package watches

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Mapper is a REST mapper that can be reset. It is needed because the REST mapper of the
// library stores each kind forever, even if the kind is removed or served as another resource.
type Mapper struct {
	config *rest.Config
	http   *http.Client

	mu      sync.RWMutex
	current meta.RESTMapper
}

// NewMapper returns a mapper that reads the kinds of an API server when they are needed.
func NewMapper(config *rest.Config, httpClient *http.Client) (*Mapper, error) {
	m := &Mapper{config: config, http: httpClient}
	return m, m.Reset()
}

// Reset drops all stored kinds, so that later calls look them up again.
func (r *Mapper) Reset() error {
	empty, err := apiutil.NewDynamicRESTMapper(r.config, r.http)
	if err != nil {
		return fmt.Errorf("making REST mapper: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = NewMappingCache(empty)
	return nil
}

// mappingCache stores the resources of kinds.
type mappingCache struct {
	meta.RESTMapper
	// mappings maps a schema.GroupVersionKind to a *meta.RESTMapping.
	mappings sync.Map
}

// NewMappingCache returns a mapper that looks up each kind only once, because the library's mapper
// searches all API groups in each lookup, and each request to an API server needs one. Kinds that are
// not found are looked up again.
func NewMappingCache(mapper meta.RESTMapper) meta.RESTMapper {
	return &mappingCache{RESTMapper: mapper}
}

// RESTMapping implements meta.RESTMapper.
func (m *mappingCache) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if cached, ok := m.mappings.Load(key); ok {
		mapping, _ := cached.(*meta.RESTMapping)
		return mapping, nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.mappings.Store(key, mapping)
	}
	return mapping, err
}

func (r *Mapper) currentMapper() meta.RESTMapper {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current
}

// KindFor implements meta.RESTMapper, as do the methods below.
func (r *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return r.currentMapper().KindFor(resource)
}

// KindsFor returns all kinds of a resource.
func (r *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return r.currentMapper().KindsFor(resource)
}

// ResourceFor returns the resource that matches a partial one.
func (r *Mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return r.currentMapper().ResourceFor(input)
}

// ResourcesFor returns all resources that match a partial one.
func (r *Mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return r.currentMapper().ResourcesFor(input)
}

// RESTMapping returns the resource of a kind.
func (r *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return r.currentMapper().RESTMapping(kind, versions...)
}

// RESTMappings returns the resources of a kind in several versions.
func (r *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return r.currentMapper().RESTMappings(kind, versions...)
}

// ResourceSingularizer returns the singular of a resource's name.
func (r *Mapper) ResourceSingularizer(resource string) (string, error) {
	return r.currentMapper().ResourceSingularizer(resource)
}
