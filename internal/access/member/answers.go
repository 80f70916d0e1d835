package member

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/served"
)

// verified is a client that takes an answer for data only if it is about the object
// that was asked for.
type verified struct {
	client.Client
	ledger *bounds.HitTracker
	// ask returns what the member says about a kind now.
	ask func(context.Context, schema.GroupVersionKind) served.Answer
}

func verifying(memberClient client.Client, ledger *bounds.HitTracker, ask func(context.Context, schema.GroupVersionKind) served.Answer) client.Client {
	return &verified{Client: memberClient, ledger: ledger, ask: ask}
}

// noPathError says that a member answers 404 without naming the object, and that its
// discovery does not say whether it serves the kind. IsNotFound does not hold for it.
type noPathError struct {
	kind  schema.GroupVersionKind
	cause error
}

func (e *noPathError) Error() string {
	return fmt.Sprintf("the cluster does not say whether it serves %s in %s: %v", e.kind.Kind, e.kind.GroupVersion(), e.cause)
}

// Get implements client.Reader.
func (v *verified) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	asked := v.address(object, key)
	if err := v.Client.Get(ctx, key, object, options...); err != nil {
		return v.absence(ctx, object, key.Name, err)
	}
	return v.same(object, asked, "")
}

// Create implements client.Writer.
func (v *verified) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	asked := v.address(object, client.ObjectKeyFromObject(object))
	if err := v.Client.Create(ctx, object, options...); err != nil || asked.Name == "" {
		return err
	}
	return v.same(object, asked, "")
}

// Update implements client.Writer.
func (v *verified) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	asked, uid := v.address(object, client.ObjectKeyFromObject(object)), object.GetUID()
	if err := v.Client.Update(ctx, object, options...); err != nil {
		return v.absence(ctx, object, asked.Name, err)
	}
	return v.same(object, asked, uid)
}

// Delete implements client.Writer.
func (v *verified) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return v.absence(ctx, object, object.GetName(), v.Client.Delete(ctx, object, options...))
}

// Patch implements client.Writer.
func (v *verified) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	asked, uid := v.address(object, client.ObjectKeyFromObject(object)), object.GetUID()
	if err := v.Client.Patch(ctx, object, patch, options...); err != nil {
		return v.absence(ctx, object, asked.Name, err)
	}
	return v.same(object, asked, uid)
}

// address returns the key under which the member is asked for an object: a request
// for a kind that is cluster-scoped there has no namespace in its path.
func (v *verified) address(object client.Object, key client.ObjectKey) client.ObjectKey {
	if key.Namespace == "" {
		return key
	}
	if namespaced, err := v.IsObjectNamespaced(object); err == nil && !namespaced {
		key.Namespace = ""
	}
	return key
}

// same returns an error for another object than the one that was asked for.
func (v *verified) same(object client.Object, asked client.ObjectKey, uid types.UID) error {
	switch got := client.ObjectKeyFromObject(object); {
	case got != asked:
		return v.lie(object, asked.Name, fmt.Sprintf("the member was asked for %q and answers with %q", asked, conditions.Shorten(conditions.Printable(got.String()), 256)))
	case uid != "" && object.GetUID() != uid:
		return v.lie(object, asked.Name, fmt.Sprintf("the member was asked for %q with one UID and answers with another UID", asked))
	}
	return nil
}

// absence returns the error of an answer. "Not found" counts only if the API server
// says it of the object: what stands in front of a server, or is there instead of it,
// also answers 404. An API server does so for the path of a kind that it does not serve;
// then meta.IsNoMatchError holds for the error. Only a member that says that it serves
// the kind contradicts itself.
func (v *verified) absence(ctx context.Context, object client.Object, name string, err error) error {
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	kind := object.GetObjectKind().GroupVersionKind()
	switch v.ask(ctx, kind) {
	case served.Served:
		return v.lie(object, name, "the member answers 404 in a form that says nothing about the object")
	case served.Absent:
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	default:
		return &noPathError{kind: kind, cause: err}
	}
}

func (v *verified) lie(object client.Object, name, what string) error {
	kind := object.GetObjectKind().GroupVersionKind()
	return v.ledger.Record(bounds.ExceededError{Bound: bounds.ObjectIdentity, Subject: fmt.Sprintf("%s %s", kind.GroupKind(), name), Detail: what})
}
