package extensionserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// StatusStorage serves the status subresource of a resource.
type StatusStorage struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusStorage{}
	_ rest.Storage             = &StatusStorage{}
	_ rest.TableConvertor      = &StatusStorage{}
	_ rest.ResetFieldsStrategy = &StatusStorage{}
)

// StatusStrategy validates and prepares the writes of a status subresource.
type StatusStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// NewStatusStorage returns the status subresource of the resource in a completed store.
func NewStatusStorage(store *genericregistry.Store, writes StatusStrategy) *StatusStorage {
	status := *store
	status.UpdateStrategy, status.ResetFieldsStrategy = writes, writes
	return &StatusStorage{store: &status}
}

// New returns an empty object of the resource.
func (s *StatusStorage) New() runtime.Object { return s.store.New() }

// Destroy does nothing, because the main resource owns the connection to etcd.
func (s *StatusStorage) Destroy() {}

// Get reads the whole object.
func (s *StatusStorage) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update replaces the status of an existing object. It never creates an object.
func (s *StatusStorage) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, object, create, update, false, options)
}

// GetResetFields returns the fields that a status write does not change.
func (s *StatusStorage) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable returns the same table as the main resource.
func (s *StatusStorage) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}

// ResetFields returns the top-level fields that a write in a version does not change. Server-side
// apply needs them.
func ResetFields(version schema.GroupVersion, names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): set}
}
