package triggers

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/detectortest"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
)

// newTemplates returns the source of templates with a catalog of policies.
func newTemplates(policies ...policy.Object) *Templates {
	s := &Templates{
		Watched: kinds.NewWatched(), Catalog: catalog.New(), Claims: claims.NewIndex(), Writes: claims.NewWriteTracker(),
		Waiting: waiting.NewTemplates(), Initial: waiting.NewInitial(), Log: logr.Discard(),
		IsSkipped: func(r templates.Ref) bool { return r.Key.Namespace == "karmada-system" },
	}
	for _, p := range policies {
		s.Catalog.Put(p)
	}
	return s
}

func TestTemplateQueueing(t *testing.T) {
	lazy := detectortest.PropagationPolicy("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	claimedBy := func(p policy.Object, replicas int64) *unstructured.Unstructured {
		object := deployment(replicas)
		policy.ClaimOf(p).Apply(object)
		return object
	}
	statusOnly := deployment(1)
	statusOnly.Object["status"] = map[string]any{"replicas": int64(1)}
	inSystem := deployment(1)
	inSystem.SetNamespace("karmada-system")

	queued := []templates.Request{webRef.Request(policy.TemplateChanged)}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []templates.Request
	}{
		"a new object":                      {nil, deployment(1), queued},
		"not one in a reserved namespace":   {nil, inSystem, nil},
		"another spec":                      {deployment(1), deployment(2), queued},
		"not another status":                {deployment(1), statusOnly, nil},
		"the first claim":                   {deployment(1), claimedBy(lazy, 1), queued},
		"the claim of another policy":       {claimedBy(lazy, 1), claimedBy(detectortest.PropagationPolicy("p"), 1), queued},
		"a Lazy policy that takes over":     {claimedBy(detectortest.PropagationPolicy("p"), 1), claimedBy(lazy, 1), []templates.Request{webRef.Request(policy.PolicyChanged)}},
		"a Lazy one and a change by a user": {claimedBy(detectortest.PropagationPolicy("p"), 1), claimedBy(lazy, 2), queued},
		"a deleted object":                  {deployment(1), nil, queued},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			queue := newQueue[templates.Request](t)
			handle := newTemplates(lazy.DeepCopy(), detectortest.PropagationPolicy("p")).OnTemplates(deployments)
			switch {
			case tc.before == nil:
				handle.Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: tc.after}, queue)
			case tc.after == nil:
				handle.Delete(t.Context(), event.TypedDeleteEvent[*unstructured.Unstructured]{Object: tc.before}, queue)
			default:
				handle.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: tc.before, ObjectNew: tc.after}, queue)
			}
			if diff := cmp.Diff(tc.want, taken(queue)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletedTemplateIsForgotten(t *testing.T) {
	p := detectortest.PropagationPolicy("p")
	s, queue := newTemplates(p), newQueue[templates.Request](t)
	claimed := deployment(1)
	policy.ClaimOf(p).Apply(claimed)
	handle := s.OnTemplates(deployments)
	handle.Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: claimed}, queue)
	if !s.Claims.IsClaimed(webRef) {
		t.Error("the claim of a new template is not in the index")
	}
	s.Writes.Expect(webRef, claimed, p)
	handle.Delete(t.Context(), event.TypedDeleteEvent[*unstructured.Unstructured]{Object: claimed}, queue)
	if s.Claims.IsClaimed(webRef) || s.Writes.Take(webRef, claimed) != nil {
		t.Error("a deleted template is still recorded")
	}
}

// refusingReader cannot watch a kind, and records the kinds whose watch ended.
type refusingReader struct {
	refused error
	ended   []schema.GroupVersionKind
}

// Watch implements KindReader.
func (r *refusingReader) Watch(context.Context, schema.GroupVersionKind) (cache.Informer, error) {
	return nil, r.refused
}

// Unwatch implements KindReader.
func (r *refusingReader) Unwatch(_ context.Context, kind schema.GroupVersionKind) error {
	r.ended = append(r.ended, kind)
	return nil
}

func TestWatchOfKind(t *testing.T) {
	refusal := errors.New("refused")
	tests := map[string]struct {
		reader, source error
	}{
		"a kind that is watched":            {},
		"a kind that the reader refuses":    {reader: refusal},
		"a kind that no source can deliver": {source: refusal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, wasWatched := newTemplates(), false
			s.Reader = &refusingReader{refused: test.reader}
			s.AddSource = func(source.TypedSource[templates.Request]) error {
				wasWatched = s.Watched.Has(deployments)
				return test.source
			}
			err := s.Watch(t.Context(), deployments)
			succeeds := test.reader == nil && test.source == nil
			if errors.Is(err, refusal) == succeeds || s.Watched.Has(deployments) != succeeds {
				t.Errorf("error %v, watched: %v", err, s.Watched.Has(deployments))
			}
			if wasWatched != (test.reader == nil) {
				t.Errorf("watched before the first object is queued: %v", wasWatched)
			}
		})
	}
}

func TestUnwatchForgetsKind(t *testing.T) {
	s, reader := newTemplates(), &refusingReader{}
	s.Reader = reader
	s.AddSource = func(source.TypedSource[templates.Request]) error { return nil }
	if err := s.Watch(t.Context(), deployments); err != nil {
		t.Fatal(err)
	}
	claimed := deployment(1)
	policy.ClaimOf(detectortest.PropagationPolicy("p")).Apply(claimed)
	s.Claims.Update(webRef, claimed)
	s.Waiting.Add(webRef, nil)
	s.Unwatch(t.Context(), deployments)
	if s.Watched.Has(deployments) || s.Claims.IsClaimed(webRef) || len(s.Waiting.Matching(policy.Filter{Kind: deployments})) != 0 {
		t.Error("the kind or its templates are still recorded")
	}
	if diff := cmp.Diff([]schema.GroupVersionKind{deployments}, reader.ended); diff != "" {
		t.Errorf("informers that ended (-want +got):\n%s", diff)
	}
}
