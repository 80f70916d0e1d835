package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/policy"
)

// echoes recognizes our own claims when the watch brings them back. The pass
// that wrote a claim goes on to the binding; a second pass would find nothing to
// do, or, when the template's status was written meanwhile, touch the binding
// without need.
//
// An echo is recognized by its content, so that a change by anybody else is
// never taken for one. Losing an entry costs one pass.
type echoes struct {
	mu       sync.Mutex
	expected map[reference]echo
}

// echo is what a template will be, and the policy it was claimed for, as the
// catalog held it then.
type echo struct {
	template *unstructured.Unstructured
	policy   policy.Object
}

func newEchoes() *echoes { return &echoes{expected: map[reference]echo{}} }

// expect is called before a template is written with what it will be.
func (e *echoes) expect(r reference, written *unstructured.Unstructured, p policy.Object) {
	expected := echo{template: written.DeepCopy(), policy: p}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expected[r] = expected
}

// forget is called when the write failed or the template is gone.
func (e *echoes) forget(r reference) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.expected, r)
}

// take returns for which policy we wrote what the watch brings; nil when we did
// not. Either way nothing is expected any more.
func (e *echoes) take(r reference, seen *unstructured.Unstructured) policy.Object {
	e.mu.Lock()
	expected, ok := e.expected[r]
	delete(e.expected, r)
	e.mu.Unlock()
	if !ok || policy.RelevantChange(expected.template, seen) {
		return nil
	}
	return expected.policy
}
