package triggers

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
)

// TemplateLister lists the objects of a kind from the cache.
type TemplateLister interface {
	ListCached(ctx context.Context, kind schema.GroupVersionKind) []*unstructured.Unstructured
}

// Rules queues the templates of a kind whose interpreter rules changed, because the replicas in
// their bindings may have to change.
type Rules struct {
	Rules     interpreter.Source
	Templates TemplateLister
	Watched   *kinds.Watched
	// IsSkipped reports whether an object is never a template.
	IsSkipped func(templates.Ref) bool
}

// Source returns the source for the controller of templates.
func (s *Rules) Source() source.TypedSource[templates.Request] {
	return interpreters.NewSource(s.Rules, s.templatesOf)
}

// templatesOf returns requests for all templates whose kind is watched and changed. It includes
// templates without a claim, because a pass that runs now may be about to claim one of them.
func (s *Rules) templatesOf(ctx context.Context, changed interpreter.Kinds) []templates.Request {
	var requests []templates.Request
	for _, kind := range s.Watched.Among(changed) {
		for _, object := range s.Templates.ListCached(ctx, kind) {
			if r := templates.RefOf(kind, object); !s.IsSkipped(r) {
				requests = append(requests, r.Request(policy.RulesChanged))
			}
		}
	}
	return requests
}
