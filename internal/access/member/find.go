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

	offered "karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/served"
)

// UnservedError says that a member may have objects of a kind which cannot be read: it
// does not serve the version that was asked for, and what else it serves is unknown or
// proves nothing.
type UnservedError struct {
	Member string
	Kind   schema.GroupVersionKind
	Cause  error
}

func (e *UnservedError) Error() string {
	return fmt.Sprintf("cluster %s does not say whether it has objects of kind %s in group %q, version %s or another: %v",
		e.Member, e.Kind.Kind, e.Kind.Group, e.Kind.Version, e.Cause)
}

func (e *UnservedError) Unwrap() error { return e.Cause }

// Find returns an object as the member has it now, nil if the member is proven to have
// none. If the member does not serve the version, the object is read in another version
// of the group. A kind that a complete answer of discovery shows in no version of its
// group, and that no CustomResourceDefinition of the member defines, is proven to have no
// objects; of any other answer the error is an UnservedError. All questions after the
// first one have the time of one request together.
func (m *Member) Find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := m.GetLive(ctx, kind, key)
	if !isUnserved(err, key.Name) {
		return found(object, err, key.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	versions, answer, failure := offered.AskGroup(inquiry{ctx, m}, kind.GroupKind())
	if answer == served.Absent {
		if failure = m.proveUndefined(ctx, kind.GroupKind()); failure == nil {
			return nil, nil
		}
	}
	if failure != nil {
		return nil, &UnservedError{Member: m.Name, Kind: kind, Cause: failure}
	}
	// The mapper may remember what the member served before.
	if err := m.mapper.forget(); err != nil {
		return nil, err
	}
	if err := m.renewClient(); err != nil {
		return nil, err
	}
	for _, version := range versions {
		if object, err = m.GetLive(ctx, kind.GroupKind().WithVersion(version), key); !isUnserved(err, key.Name) {
			return found(object, err, key.Name)
		}
	}
	return nil, &UnservedError{Member: m.Name, Kind: kind, Cause: err}
}

// IsUnserved reports whether an error of a member says that it does not serve a kind, or
// does not say whether it does.
func IsUnserved(err error) bool {
	return meta.IsNoMatchError(err) || errors.As(err, new(*noPathError))
}

// isUnserved reports whether an error says nothing about an object because the path of
// its kind may not be served.
func isUnserved(err error, name string) bool {
	return IsUnserved(err) || apierrors.IsNotFound(err) && !served.IsObjectAbsent(err, name)
}

func found(object *unstructured.Unstructured, err error, name string) (*unstructured.Unstructured, error) {
	if served.IsObjectAbsent(err, name) {
		return nil, nil
	}
	return object, err
}
