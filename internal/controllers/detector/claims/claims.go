// Package claims answers "which policy claims a template, and how does the claim change?". It
// writes, moves and removes the claims of templates, and indexes them. Invariants:
//
//   - The package claims, preempts or releases a template with one write.
//   - The claim of a binding is removed before the claim of its template. If the process ends
//     between the two writes, the template is still claimed and the next reconcile continues.
//   - A claim is removed only if its ID matches.
package claims

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop/patch"
)

// TemplateReader reads templates. It returns nil for a missing template. The returned template must
// not be changed.
type TemplateReader interface {
	GetCached(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

// Decider decides which policy claims a template.
type Decider interface {
	Decide(template *unstructured.Unstructured) policy.Decision
}

// Claimer claims templates for policies.
type Claimer struct {
	Karmada client.Writer
	// Writes records each write before it is sent.
	Writes *WriteTracker
}

// Claim adds the claim of the policy and the user's state to the template. It returns the stored
// template, or nil if the template no longer exists.
func (c *Claimer) Claim(ctx context.Context, r templates.Ref, template *unstructured.Unstructured, p policy.Object, state string) (*unstructured.Unstructured, error) {
	claimed := template.DeepCopy()
	policy.ClaimOf(p).Apply(claimed)
	policy.SetUserState(claimed, state)
	if policy.HasRelevantChange(template, claimed) {
		c.Writes.Expect(r, claimed, p)
	}
	_, err := patch.Object(ctx, c.Karmada, template, claimed)
	if err != nil {
		c.Writes.Delete(r)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}
