package detector

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/policy"
)

// newTestTemplateSource returns the source of templates with a catalog of policies.
func newTestTemplateSource(t *testing.T, policies ...policy.Object) (*templateSource, workqueue.TypedRateLimitingInterface[templateRequest]) {
	queue := newQueue[templateRequest](t)
	s := &templateSource{
		manager: watches.NewManager(t.Context()), queue: newTemplateQueue(),
		watched: newWatchedKinds(), catalog: newPolicyCatalog(), claims: newClaimIndex(), writes: newWriteTracker(),
		waiting: newWaitingTemplates(), initial: newOldTemplates(), awaitingObject: newWaitingRequests(), log: logr.Discard(),
		isSkipped: func(r templateRef) bool { return r.Key.Namespace == "karmada-system" },
	}
	for _, p := range policies {
		s.catalog.put(p)
	}
	s.queue.open(queue)
	return s, queue
}

func TestTemplateQueueing(t *testing.T) {
	lazy := newPropagationPolicy("lazy")
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

	queued := []templateRequest{webRef.request(policy.TemplateChanged)}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []templateRequest
	}{
		"a new object":                      {nil, deployment(1), queued},
		"not one in a reserved namespace":   {nil, inSystem, nil},
		"another spec":                      {deployment(1), deployment(2), queued},
		"not another status":                {deployment(1), statusOnly, nil},
		"the first claim":                   {deployment(1), claimedBy(lazy, 1), queued},
		"the claim of another policy":       {claimedBy(lazy, 1), claimedBy(newPropagationPolicy("p"), 1), queued},
		"a Lazy policy that takes over":     {claimedBy(newPropagationPolicy("p"), 1), claimedBy(lazy, 1), []templateRequest{webRef.request(policy.PolicyChanged)}},
		"a Lazy one and a change by a user": {claimedBy(newPropagationPolicy("p"), 1), claimedBy(lazy, 2), queued},
		"a deleted object":                  {deployment(1), nil, queued},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, queue := newTestTemplateSource(t, lazy.DeepCopy(), newPropagationPolicy("p"))
			handler := s.newTemplateHandler(deployments)
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
	p := newPropagationPolicy("p")
	s, _ := newTestTemplateSource(t, p)
	claimed := deployment(1)
	policy.ClaimOf(p).Apply(claimed)
	handler := s.newTemplateHandler(deployments)
	handler.OnAdd(claimed, false)
	if !s.claims.isClaimed(webRef) {
		t.Error("the claim of a new template is not in the index")
	}
	s.writes.expect(webRef, claimed, p)
	handler.OnDelete(claimed)
	if s.claims.isClaimed(webRef) || s.writes.take(webRef, claimed) != nil {
		t.Error("a deleted template is still recorded")
	}
}

func TestUnwatchForgetsKind(t *testing.T) {
	s, _ := newTestTemplateSource(t)
	if err := s.Watch(deployments); err != nil {
		t.Fatal(err)
	}
	query := watches.Query{Kind: deployments}
	if _, isWatched := s.manager.Find(watches.ControlPlane, query); !isWatched || !s.watched.Has(deployments) {
		t.Error("the kind is not watched")
	}
	claimed := deployment(1)
	policy.ClaimOf(newPropagationPolicy("p")).Apply(claimed)
	s.claims.update(webRef, claimed)
	s.waiting.add(webRef, nil)
	override := types.NamespacedName{Namespace: "shop", Name: "o"}
	s.awaitingObject.add(override, webRef.request(policy.TemplateChanged))
	s.writes.expect(webRef, claimed, newPropagationPolicy("p"))
	s.Unwatch(deployments)
	if s.watched.Has(deployments) || s.claims.isClaimed(webRef) || len(s.waiting.matching(policy.Filter{Kind: deployments})) != 0 {
		t.Error("the kind or its templates are still recorded")
	}
	if requests := s.awaitingObject.take(override); len(requests) != 0 || s.writes.take(webRef, claimed) != nil {
		t.Error("requests or writes of the kind are still recorded")
	}
	if _, isWatched := s.manager.Find(watches.ControlPlane, query); isWatched {
		t.Error("the watch of the kind did not end")
	}
}
