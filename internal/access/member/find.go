package member

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/servedkinds"
)

// KindUnservedError reports that a member may have objects of a kind that cannot be read, because
// the member does not serve the requested version, and the other versions of the kind are unknown
// or do not prove that there are no objects.
type KindUnservedError struct {
	Member string
	Kind   schema.GroupVersionKind
	Cause  error
}

func (k *KindUnservedError) Error() string {
	return fmt.Sprintf("cluster %s does not say whether it has objects of kind %s in group %q, version %s or another: %v",
		k.Member, k.Kind.Kind, k.Kind.Group, k.Kind.Version, k.Cause)
}

func (k *KindUnservedError) Unwrap() error { return k.Cause }

// FindInAnyVersion reads an object from the member. It returns nil if it is proven that the object
// does not exist. If the member does not serve the requested version, FindInAnyVersion reads the
// object in another version of the group. A kind is proven to have no objects if a complete
// discovery response contains the kind in no version of its group, and no CustomResourceDefinition of
// the member defines the kind. For any other response the error is of type KindUnservedError. All
// requests after the first one together have the timeout of one request.
func (m *Member) FindInAnyVersion(ctx context.Context, kind schema.GroupVersionKind,
	key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := m.GetLive(ctx, kind, key)
	if !mayBeUnserved(err, key.Name) {
		return nilIfAbsent(object, err, key.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	versions, state, failure := servedkinds.LookupGroup(contextDiscovery{ctx, m}, kind.GroupKind())
	if state == servedkinds.NotServed {
		if failure = m.proveKindUndefined(ctx, kind.GroupKind()); failure == nil {
			return nil, nil
		}
	}
	if failure != nil {
		return nil, &KindUnservedError{Member: m.Name, Kind: kind, Cause: failure}
	}
	// The mapper is reset, because it may still contain a version that is no longer served.
	if err := m.mapper.Reset(); err != nil {
		return nil, err
	}
	if err := m.resetClient(); err != nil {
		return nil, err
	}
	for _, version := range versions {
		if object, err = m.GetLive(ctx, kind.GroupKind().WithVersion(version), key); !mayBeUnserved(err, key.Name) {
			return nilIfAbsent(object, err, key.Name)
		}
	}
	return nil, &KindUnservedError{Member: m.Name, Kind: kind, Cause: err}
}

// IsKindUnserved reports whether an error means that the member does not serve a kind, or that it
// is unknown whether the member serves the kind.
func IsKindUnserved(err error) bool {
	return meta.IsNoMatchError(err) || errors.As(err, new(*servedUnknownError))
}

// mayBeUnserved reports whether the error may mean that the API server does not serve the kind, so
// that the error does not prove that the object is absent.
func mayBeUnserved(err error, name string) bool {
	return IsKindUnserved(err) || apierrors.IsNotFound(err) && !servedkinds.IsObjectNotFound(err, name)
}

func nilIfAbsent(object *unstructured.Unstructured, err error, name string) (*unstructured.Unstructured, error) {
	if servedkinds.IsObjectNotFound(err, name) {
		return nil, nil
	}
	return object, err
}
