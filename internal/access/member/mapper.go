package member

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// resettableMapper is a REST mapper that can be reset. It is needed because the REST mapper of the
// library stores each kind forever, even if the kind is removed or served as another resource.
type resettableMapper struct {
	config *rest.Config
	http   *http.Client

	mu      sync.RWMutex
	current meta.RESTMapper
}

func newResettableMapper(config *rest.Config, httpClient *http.Client) (*resettableMapper, error) {
	m := &resettableMapper{config: config, http: httpClient}
	return m, m.reset()
}

// reset drops all stored kinds, so that later calls look them up again.
func (m *resettableMapper) reset() error {
	empty, err := apiutil.NewDynamicRESTMapper(m.config, m.http)
	if err != nil {
		return fmt.Errorf("making REST mapper: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = empty
	return nil
}

func (m *resettableMapper) currentMapper() meta.RESTMapper {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.current
}

// KindFor implements meta.RESTMapper, as do the methods below.
func (m *resettableMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.currentMapper().KindFor(resource)
}

// KindsFor returns all kinds of a resource.
func (m *resettableMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.currentMapper().KindsFor(resource)
}

// ResourceFor returns the resource that matches a partial one.
func (m *resettableMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.currentMapper().ResourceFor(input)
}

// ResourcesFor returns all resources that match a partial one.
func (m *resettableMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.currentMapper().ResourcesFor(input)
}

// RESTMapping returns the resource of a kind.
func (m *resettableMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.currentMapper().RESTMapping(kind, versions...)
}

// RESTMappings returns the resources of a kind in several versions.
func (m *resettableMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.currentMapper().RESTMappings(kind, versions...)
}

// ResourceSingularizer returns the singular of a resource's name.
func (m *resettableMapper) ResourceSingularizer(resource string) (string, error) {
	return m.currentMapper().ResourceSingularizer(resource)
}
