package claims

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

// WriteTracker recognizes the claim writes of this process when the watch delivers them. These
// events need no second reconcile, because the reconcile that writes a claim also updates the
// binding. A second reconcile would find no difference, or would write the binding although only
// the status of the template was changed in the meantime.
//
// A write is recognized by its content, so a change by another client is never mistaken for it. If
// the record of a write is lost, the template is reconciled once more.
type WriteTracker struct {
	mu       sync.Mutex
	expected map[templates.Ref]write
}

// write contains the content of a template after a write. It also contains the policy that claims
// the template, in the version that the catalog contained at the time of the write.
type write struct {
	template *unstructured.Unstructured
	policy   policy.Object
}

// NewWriteTracker returns an empty tracker.
func NewWriteTracker() *WriteTracker {
	return &WriteTracker{expected: map[templates.Ref]write{}}
}

// Expect records the content with which a template is about to be written.
func (w *WriteTracker) Expect(r templates.Ref, written *unstructured.Unstructured, p policy.Object) {
	expected := write{template: written.DeepCopy(), policy: p}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[r] = expected
}

// Delete removes the record of a write. It is called if the write failed or the template was
// deleted.
func (w *WriteTracker) Delete(r templates.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.expected, r)
}

// Take returns the policy of the recorded write if the delivered object equals the written one,
// else nil. It removes the record in both cases.
func (w *WriteTracker) Take(r templates.Ref, delivered *unstructured.Unstructured) policy.Object {
	w.mu.Lock()
	expected, ok := w.expected[r]
	delete(w.expected, r)
	w.mu.Unlock()
	if !ok || policy.HasRelevantChange(expected.template, delivered) {
		return nil
	}
	return expected.policy
}
