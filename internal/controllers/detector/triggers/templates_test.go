package triggers

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/detectortest"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
)

// newTemplates returns the source of templates with a catalog of policies.
func newTemplates(t *testing.T, policies ...policy.Object) (*Templates, workqueue.TypedRateLimitingInterface[templates.Request]) {
	queue := newQueue[templates.Request](t)
	s := &Templates{
		Manager: watches.NewManager(t.Context()), Queue: templates.NewQueue(),
		Watched: kinds.NewWatched(), Catalog: catalog.New(), Claims: claims.NewIndex(), Writes: claims.NewWriteTracker(),
		Waiting: waiting.NewTemplates(), Initial: waiting.NewInitial(), Log: logr.Discard(),
		IsSkipped: func(r templates.Ref) bool { return r.Key.Namespace == "karmada-system" },
	}
	for _, p := range policies {
		s.Catalog.Put(p)
	}
	s.Queue.Open(queue)
	return s, queue
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
			s, queue := newTemplates(t, lazy.DeepCopy(), detectortest.PropagationPolicy("p"))
			handler := s.OnTemplates(deployments)
			switch {
			case tc.before == nil:
				handler.OnAdd(tc.after, false)
			case tc.after == nil:
				handler.OnDelete(tc.before)
			default:
				handler.OnUpdate(tc.before, tc.after)
			}
			if diff := cmp.Diff(tc.want, taken(queue)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletedTemplateIsForgotten(t *testing.T) {
	p := detectortest.PropagationPolicy("p")
	s, _ := newTemplates(t, p)
	claimed := deployment(1)
	policy.ClaimOf(p).Apply(claimed)
	handler := s.OnTemplates(deployments)
	handler.OnAdd(claimed, false)
	if !s.Claims.IsClaimed(webRef) {
		t.Error("the claim of a new template is not in the index")
	}
	s.Writes.Expect(webRef, claimed, p)
	handler.OnDelete(claimed)
	if s.Claims.IsClaimed(webRef) || s.Writes.Take(webRef, claimed) != nil {
		t.Error("a deleted template is still recorded")
	}
}

func TestUnwatchForgetsKind(t *testing.T) {
	s, _ := newTemplates(t)
	if err := s.Watch(deployments); err != nil {
		t.Fatal(err)
	}
	query := watches.Query{Kind: deployments}
	if _, isWatched := s.Manager.Find(watches.ControlPlane, query); !isWatched || !s.Watched.Has(deployments) {
		t.Error("the kind is not watched")
	}
	claimed := deployment(1)
	policy.ClaimOf(detectortest.PropagationPolicy("p")).Apply(claimed)
	s.Claims.Update(webRef, claimed)
	s.Waiting.Add(webRef, nil)
	s.Unwatch(deployments)
	if s.Watched.Has(deployments) || s.Claims.IsClaimed(webRef) || len(s.Waiting.Matching(policy.Filter{Kind: deployments})) != 0 {
		t.Error("the kind or its templates are still recorded")
	}
	if _, isWatched := s.Manager.Find(watches.ControlPlane, query); isWatched {
		t.Error("the watch of the kind did not end")
	}
}
