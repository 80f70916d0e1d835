package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/policy"
)

// claimWriteTracker recognizes this process's own claim writes when the watch delivers them.
// The reconcile that writes a claim also updates the binding. A second reconcile would find no
// difference, or would write the binding needlessly when only the status of the template was
// written meanwhile.
//
// A write is recognized by its content. A change by another client is never mistaken for it. A
// lost entry costs one reconcile.
type claimWriteTracker struct {
	mu       sync.Mutex
	expected map[templateRef]claimWrite
}

// claimWrite is the content of a template after a write, and its policy as the catalog held it
// at that time.
type claimWrite struct {
	template *unstructured.Unstructured
	policy   policy.Object
}

func newClaimWriteTracker() *claimWriteTracker {
	return &claimWriteTracker{expected: map[templateRef]claimWrite{}}
}

// expect records the content that a template is about to be written with.
func (e *claimWriteTracker) expect(r templateRef, written *unstructured.Unstructured, p policy.Object) {
	expected := claimWrite{template: written.DeepCopy(), policy: p}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expected[r] = expected
}

// delete is called when the write failed or the template was deleted.
func (e *claimWriteTracker) delete(r templateRef) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.expected, r)
}

// take returns the policy of the recorded write if the delivered object equals it, else nil.
// The record is removed in either case.
func (e *claimWriteTracker) take(r templateRef, delivered *unstructured.Unstructured) policy.Object {
	e.mu.Lock()
	expected, ok := e.expected[r]
	delete(e.expected, r)
	e.mu.Unlock()
	if !ok || policy.HasRelevantChange(expected.template, delivered) {
		return nil
	}
	return expected.policy
}
