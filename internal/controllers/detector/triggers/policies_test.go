package triggers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/detectortest"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

func TestPriorityClassQueuesPolicies(t *testing.T) {
	high, low := detectortest.PriorityClass("high", 100), detectortest.PriorityClass("low", 1)
	relabelled := detectortest.PriorityClass("high", 100)
	relabelled.SetLabels(map[string]string{"a": "b"})
	tests := map[string]struct {
		scope         int
		before, after *unstructured.Unstructured
		initial       bool
		want          []string
	}{
		"a new class queues the policies that name it": {after: high, want: []string{"shop/a"}},
		"a new class queues cluster policies":          {scope: 1, after: high, want: []string{"/c"}},
		"a class that no policy names":                 {after: detectortest.PriorityClass("other", 1)},
		"a class that a policy named before":           {after: low},
		"not in the initial list":                      {after: high, initial: true},
		"another value queues":                         {before: detectortest.PriorityClass("high", 7), after: high, want: []string{"shop/a"}},
		"another label does not queue":                 {before: high, after: relabelled},
		"a deleted class does not queue":               {before: high},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := catalog.New()
			c.Put(detectortest.WithPriorityClass(detectortest.PropagationPolicy("a"), "low"))
			c.Put(detectortest.WithPriorityClass(detectortest.PropagationPolicy("a"), "high"))
			c.Put(detectortest.PropagationPolicy("b"))
			c.Put(detectortest.WithPriorityClass(detectortest.ClusterPropagationPolicy("c"), "high"))
			queue := newQueue[reconcile.Request](t)
			handle := (&Policies{Scope: catalog.Scopes()[tc.scope], Catalog: c}).onPriorityClasses(queue)
			switch {
			case tc.before == nil:
				handle.OnAdd(tc.after, tc.initial)
			case tc.after == nil:
				handle.OnDelete(tc.before)
			default:
				handle.OnUpdate(tc.before, tc.after)
			}
			var got []string
			for _, request := range taken(queue) {
				got = append(got, request.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyQueueing(t *testing.T) {
	preempting := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := detectortest.PropagationPolicy(name)
		p.Spec.Preemption, p.Spec.Priority = policyv1alpha1.PreemptAlways, new(priority)
		return p
	}
	edited := func(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
		p.Generation++
		return p
	}
	terminating := detectortest.PropagationPolicy("p")
	terminating.DeletionTimestamp = &metav1.Time{}
	annotated := detectortest.PropagationPolicy("p")
	annotated.Annotations = map[string]string{"a": "b"}
	tests := map[string]struct {
		noPreemption  bool
		before, after *policyv1alpha1.PropagationPolicy
		initial       bool
		want          []string
	}{
		"a new one":                                        {after: detectortest.PropagationPolicy("p"), want: []string{"p"}},
		"not one of the initial list":                      {after: detectortest.PropagationPolicy("p"), initial: true},
		"one of the initial list that may preempt":         {after: preempting("p", 1), initial: true, want: []string{"p"}},
		"not without the preemption feature":               {noPreemption: true, after: preempting("p", 1), initial: true},
		"one of the initial list that is being deleted":    {after: terminating, initial: true, want: []string{"p"}},
		"another spec":                                     {before: detectortest.PropagationPolicy("p"), after: edited(detectortest.PropagationPolicy("p")), want: []string{"p"}},
		"not an annotation":                                {before: detectortest.PropagationPolicy("p"), after: annotated},
		"a lowered priority queues the new preemptors too": {before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p", "top", "high", "mid"}},
		"a lowered priority alone, without the feature":    {noPreemption: true, before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p"}},
		"a raised priority alone":                          {before: preempting("p", 2), after: edited(preempting("p", 10)), want: []string{"p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := catalog.New()
			for _, peer := range []policy.Object{preempting("mid", 5), preempting("high", 8), preempting("top", 10), detectortest.PropagationPolicy("plain")} {
				c.Put(peer)
			}
			queue := newQueue[reconcile.Request](t)
			handle := (&Policies{Scope: catalog.Scopes()[0], Catalog: c, Queue: templates.NewQueue(), Preemption: !tc.noPreemption}).OnPolicies(queue)
			if tc.before == nil {
				handle.OnAdd(tc.after, tc.initial)
			} else {
				handle.OnUpdate(tc.before, tc.after)
			}
			if c.Get("shop", "p") != tc.after {
				t.Error("the catalog does not contain the policy before it is queued")
			}
			var got []string
			for _, request := range taken(queue) {
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletedPolicyQueuesClaimedTemplates(t *testing.T) {
	p, recreated := detectortest.PropagationPolicy("p"), detectortest.PropagationPolicy("p")
	recreated.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-recreated"}
	tests := map[string]struct {
		deliver func(toolscache.ResourceEventHandler)
		closed  bool
		want    []templates.Request
	}{
		"a deleted policy": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(p) },
			want:    []templates.Request{webRef.Request(policy.TemplateChanged)},
		},
		"a tombstone of a policy": {
			deliver: func(h toolscache.ResourceEventHandler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: p})
			},
			want: []templates.Request{webRef.Request(policy.TemplateChanged)},
		},
		"a policy that was created again": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnUpdate(p, recreated) },
			want:    []templates.Request{webRef.Request(policy.TemplateChanged)},
		},
		"not before the controller of templates starts": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(p) }, closed: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queue, policies := newQueue[templates.Request](t), newQueue[reconcile.Request](t)
			s := &Policies{Scope: catalog.Scopes()[0], Catalog: catalog.New(), Queue: templates.NewQueue(), TemplatesOf: func(id string) []templates.Ref {
				if id != "id-p" {
					return nil
				}
				return []templates.Ref{webRef}
			}}
			if !test.closed {
				s.Queue.Open(queue)
			}
			test.deliver(s.OnPolicies(policies))
			if diff := cmp.Diff(test.want, taken(queue)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}
