package member

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offered "karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/served"
)

// UnservedError says that a member does not tell whether it has objects of a kind: it
// does not serve the version that was asked for, and what it serves could not be read.
type UnservedError struct {
	Member string
	Kind   schema.GroupVersionKind
	Cause  error
}

func (e *UnservedError) Error() string {
	return fmt.Sprintf("cluster %s does not say whether it serves %s in group %q, version %s or another: %v",
		e.Member, e.Kind.Kind, e.Kind.Group, e.Kind.Version, e.Cause)
}

func (e *UnservedError) Unwrap() error { return e.Cause }

// Find returns an object as the member has it now, nil if the member is proven to have
// none. If the member does not serve the version, the object is read in another version
// of the group. A kind that a complete answer of discovery shows in no version of its
// group is proven to have no objects; of any other answer the error is an UnservedError.
func (m *Member) Find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object, err := m.GetLive(ctx, kind, key)
	if !isUnserved(err, key.Name) {
		return found(object, err, key.Name)
	}
	versions, answer, failure := offered.AskGroup(m.discovery, kind.GroupKind())
	switch {
	case failure != nil:
		return nil, &UnservedError{Member: m.Name, Kind: kind, Cause: failure}
	case answer == served.Absent:
		return nil, nil
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

// isUnserved reports whether an error says that the path of a kind is not served.
func isUnserved(err error, name string) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !served.IsObjectAbsent(err, name)
}

func found(object *unstructured.Unstructured, err error, name string) (*unstructured.Unstructured, error) {
	if served.IsObjectAbsent(err, name) {
		return nil, nil
	}
	return object, err
}
