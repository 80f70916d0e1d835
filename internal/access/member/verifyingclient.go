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
	"karmada.io/karmada/internal/domain/servedkinds"
)

// verifyingClient is a client that accepts a response only if it contains the requested object.
type verifyingClient struct {
	client.Client
	hits *bounds.HitTracker
	// queryKind returns whether the member serves a kind now.
	queryKind func(context.Context, schema.GroupVersionKind) servedkinds.Availability
}

func newVerifyingClient(memberClient client.Client, hits *bounds.HitTracker,
	ask func(context.Context, schema.GroupVersionKind) servedkinds.Availability) client.Client {
	return &verifyingClient{Client: memberClient, hits: hits, queryKind: ask}
}

// servedUnknownError reports that a member returns 404 without naming the object, and that
// discovery does not show whether the member serves the kind. apierrors.IsNotFound is false for
// this error.
type servedUnknownError struct {
	kind  schema.GroupVersionKind
	cause error
}

func (s *servedUnknownError) Error() string {
	return fmt.Sprintf("the cluster does not say whether it serves %s in %s: %v", s.kind.Kind, s.kind.GroupVersion(), s.cause)
}

// Get implements client.Reader.
func (v *verifyingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	requested := v.requestKey(object, key)
	if err := v.Client.Get(ctx, key, object, options...); err != nil {
		return v.verifyNotFound(ctx, object, key.Name, err)
	}
	return v.requireSameObject(object, requested, "")
}

// Create implements client.Writer.
func (v *verifyingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	requested := v.requestKey(object, client.ObjectKeyFromObject(object))
	if err := v.Client.Create(ctx, object, options...); err != nil || requested.Name == "" {
		return err
	}
	return v.requireSameObject(object, requested, "")
}

// Update implements client.Writer.
func (v *verifyingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	requested, uid := v.requestKey(object, client.ObjectKeyFromObject(object)), object.GetUID()
	if err := v.Client.Update(ctx, object, options...); err != nil {
		return v.verifyNotFound(ctx, object, requested.Name, err)
	}
	return v.requireSameObject(object, requested, uid)
}

// Delete implements client.Writer.
func (v *verifyingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return v.verifyNotFound(ctx, object, object.GetName(), v.Client.Delete(ctx, object, options...))
}

// Patch implements client.Writer.
func (v *verifyingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	requested, uid := v.requestKey(object, client.ObjectKeyFromObject(object)), object.GetUID()
	if err := v.Client.Patch(ctx, object, patch, options...); err != nil {
		return v.verifyNotFound(ctx, object, requested.Name, err)
	}
	return v.requireSameObject(object, requested, uid)
}

// requestKey returns the key under which an object is requested. For a cluster-scoped kind the key
// has no namespace, because the path of the request has none.
func (v *verifyingClient) requestKey(object client.Object, key client.ObjectKey) client.ObjectKey {
	if key.Namespace == "" {
		return key
	}
	if namespaced, err := v.IsObjectNamespaced(object); err == nil && !namespaced {
		key.Namespace = ""
	}
	return key
}

// requireSameObject returns an error if the object in the response is not the requested object.
func (v *verifyingClient) requireSameObject(object client.Object, requested client.ObjectKey, uid types.UID) error {
	switch got := client.ObjectKeyFromObject(object); {
	case got != requested:
		return v.recordWrongObject(object, requested.Name,
			fmt.Sprintf("the request was for %q, but the member responded with %q", requested,
				conditions.Truncate(conditions.ToPrintable(got.String()), 256)))
	case uid != "" && object.GetUID() != uid:
		return v.recordWrongObject(object, requested.Name,
			fmt.Sprintf("the request was for %q with one UID, but the member responded with another UID", requested))
	}
	return nil
}

// verifyNotFound checks whether a 404 response proves that the object does not exist, and returns the
// error for the caller. A 404 counts as "not found" only if the response names the object, because a
// proxy in front of the API server, or another server at its address, also returns 404. An API
// server also returns 404 without the name for a kind that it does not serve. In that case the
// returned error matches meta.IsNoMatchError. If discovery shows that the member serves the kind,
// the responses of the member contradict each other.
func (v *verifyingClient) verifyNotFound(ctx context.Context, object client.Object, name string, err error) error {
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	kind := object.GetObjectKind().GroupVersionKind()
	switch v.queryKind(ctx, kind) {
	case servedkinds.Served:
		return v.recordWrongObject(object, name, "the member responds with 404 without naming the object")
	case servedkinds.NotServed:
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	default:
		return &servedUnknownError{kind: kind, cause: err}
	}
}

func (v *verifyingClient) recordWrongObject(object client.Object, name, detail string) error {
	kind := object.GetObjectKind().GroupVersionKind()
	return v.hits.Record(bounds.ExceededError{Bound: bounds.ObjectIdentity, Subject: fmt.Sprintf("%s %s", kind.GroupKind(), name),
		Detail: detail})
}
