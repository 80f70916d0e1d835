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

// mapper is a REST mapper that can forget. The library's own keeps a kind for ever
// that it found once, also when the kind is removed or comes back as another resource.
type mapper struct {
	config *rest.Config
	http   *http.Client

	mu      sync.RWMutex
	current meta.RESTMapper
}

func newMapper(config *rest.Config, httpClient *http.Client) (*mapper, error) {
	m := &mapper{config: config, http: httpClient}
	return m, m.forget()
}

// forget has all kinds looked up anew when they are asked for.
func (m *mapper) forget() error {
	empty, err := apiutil.NewDynamicRESTMapper(m.config, m.http)
	if err != nil {
		return fmt.Errorf("making REST mapper: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = empty
	return nil
}

func (m *mapper) now() meta.RESTMapper {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.current
}

// KindFor implements meta.RESTMapper, as all that follows.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.now().KindFor(resource)
}

// KindsFor returns all kinds of a resource.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.now().KindsFor(resource)
}

// ResourceFor returns the resource that a partial one means.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.now().ResourceFor(input)
}

// ResourcesFor returns all resources that a partial one may mean.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.now().ResourcesFor(input)
}

// RESTMapping returns the resource of a kind.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.now().RESTMapping(kind, versions...)
}

// RESTMappings returns the resources of a kind in several versions.
func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.now().RESTMappings(kind, versions...)
}

// ResourceSingularizer returns the singular of a resource's name.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.now().ResourceSingularizer(resource)
}
