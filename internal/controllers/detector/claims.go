package detector

import (
	"context"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop/patch"
)

// templateReader reads templates and PriorityClasses from the cache. It returns nil if the object is
// not found. The returned object must not be changed.
type templateReader interface {
	GetCached(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

// policyDecider decides which policy claims a template.
type policyDecider interface {
	decide(template *unstructured.Unstructured) policy.Decision
}

// claimer claims templates for policies. A claim is written, moved or removed with one patch.
type claimer struct {
	karmada client.Client
	// writes records each write before it is sent.
	writes *writeTracker
}

// claim adds the claim of the policy and the user's state to the template. It returns the stored
// template, which must not be changed, or nil if the template no longer exists.
func (c *claimer) claim(ctx context.Context, r templateRef, template *unstructured.Unstructured, p policy.Object,
	state string) (*unstructured.Unstructured, error) {
	claimed := copyMetadata(template)
	policy.ClaimOf(p).Apply(claimed)
	policy.SetUserState(claimed, state)
	if policy.HasRelevantChange(template, claimed) {
		c.writes.expect(r, claimed, p)
	}
	_, err := patch.Object(ctx, c.karmada, template, claimed)
	if err != nil {
		c.writes.delete(r)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// copyMetadata returns a copy of the object whose metadata can be changed. All other fields are shared with
// the object.
func copyMetadata(object *unstructured.Unstructured) *unstructured.Unstructured {
	copied := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		copied.Object["metadata"] = runtime.DeepCopyJSON(metadata)
	}
	return copied
}

// writeTracker recognizes the claim writes of this process when the watch delivers them. These
// events need no second reconcile, because the reconcile that writes a claim also updates the
// binding. A second reconcile would find no difference, or would write the binding although only
// the status of the template was changed in the meantime.
//
// A write is recognized by its content, so a change by another client is never mistaken for it. If
// the record of a write is lost, the template is reconciled once more.
type writeTracker struct {
	mu       sync.Mutex
	expected map[templateRef]claimWrite
}

// claimWrite contains the content of a template after a write. It also contains the policy that claims
// the template, in the version that the catalog contained at the time of the write.
type claimWrite struct {
	template *unstructured.Unstructured
	policy   policy.Object
}

// newWriteTracker returns an empty tracker.
func newWriteTracker() *writeTracker {
	return &writeTracker{expected: map[templateRef]claimWrite{}}
}

// expect records the content with which a template is about to be written.
func (w *writeTracker) expect(r templateRef, written *unstructured.Unstructured, p policy.Object) {
	expected := claimWrite{template: copyMetadata(written), policy: p}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[r] = expected
}

// delete removes the record of a write. It is called if the write failed or the template was
// deleted.
func (w *writeTracker) delete(r templateRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.expected, r)
}

// deleteKind removes all records of the kind's templates.
func (w *writeTracker) deleteKind(kind schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.expected, func(r templateRef, _ claimWrite) bool { return r.Kind == kind })
}

// take returns the policy of the recorded write if the delivered object equals the written one,
// else nil. It removes the record in both cases.
func (w *writeTracker) take(r templateRef, delivered *unstructured.Unstructured) policy.Object {
	w.mu.Lock()
	expected, ok := w.expected[r]
	delete(w.expected, r)
	w.mu.Unlock()
	if !ok || policy.HasRelevantChange(expected.template, delivered) {
		return nil
	}
	return expected.policy
}
