package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestPriorityClassQueuesPolicies(t *testing.T) {
	high, low := newPriorityClass("high", 100), newPriorityClass("low", 1)
	relabelled := newPriorityClass("high", 100)
	relabelled.SetLabels(map[string]string{"a": "b"})
	tests := map[string]struct {
		scope         int
		before, after *unstructured.Unstructured
		initial       bool
		want          []string
	}{
		"a new class queues the policies that name it": {after: high, want: []string{"shop/a"}},
		"a new class queues cluster policies":          {scope: 1, after: high, want: []string{"/c"}},
		"a class that no policy names":                 {after: newPriorityClass("other", 1)},
		"a class that a policy named before":           {after: low},
		"not in the initial list":                      {after: high, initial: true},
		"another value queues":                         {before: newPriorityClass("high", 7), after: high, want: []string{"shop/a"}},
		"another label does not queue":                 {before: high, after: relabelled},
		"a deleted class does not queue":               {before: high},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newPolicyCatalog()
			c.put(withPriorityClass(newPropagationPolicy("a"), "low"))
			c.put(withPriorityClass(newPropagationPolicy("a"), "high"))
			c.put(newPropagationPolicy("b"))
			c.put(withPriorityClass(newClusterPropagationPolicy("c"), "high"))
			queue := newQueue[reconcile.Request](t)
			handle := (&policySource{scope: policyScopes()[tc.scope], catalog: c}).newPriorityClassHandler(queue)
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
		p := newPropagationPolicy(name)
		p.Spec.Preemption, p.Spec.Priority = policyv1alpha1.PreemptAlways, new(priority)
		return p
	}
	edited := func(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
		p.Generation++
		return p
	}
	terminating := newPropagationPolicy("p")
	terminating.DeletionTimestamp = &metav1.Time{}
	annotated := newPropagationPolicy("p")
	annotated.Annotations = map[string]string{"a": "b"}
	tests := map[string]struct {
		noPreemption  bool
		before, after *policyv1alpha1.PropagationPolicy
		initial       bool
		want          []string
	}{
		"a new one":                                        {after: newPropagationPolicy("p"), want: []string{"p"}},
		"not one of the initial list":                      {after: newPropagationPolicy("p"), initial: true},
		"one of the initial list that may preempt":         {after: preempting("p", 1), initial: true, want: []string{"p"}},
		"not without the preemption feature":               {noPreemption: true, after: preempting("p", 1), initial: true},
		"one of the initial list that is being deleted":    {after: terminating, initial: true, want: []string{"p"}},
		"another spec":                                     {before: newPropagationPolicy("p"), after: edited(newPropagationPolicy("p")), want: []string{"p"}},
		"not an annotation":                                {before: newPropagationPolicy("p"), after: annotated},
		"a lowered priority queues the new preemptors too": {before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p", "top", "high", "mid"}},
		"a lowered priority alone, without the feature":    {noPreemption: true, before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p"}},
		"a raised priority alone":                          {before: preempting("p", 2), after: edited(preempting("p", 10)), want: []string{"p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newPolicyCatalog()
			for _, peer := range []policy.Object{preempting("mid", 5), preempting("high", 8), preempting("top", 10), newPropagationPolicy("plain")} {
				c.put(peer)
			}
			queue := newQueue[reconcile.Request](t)
			handle := (&policySource{scope: policyScopes()[0], catalog: c, queue: newTemplateQueue(), preemption: !tc.noPreemption}).newPolicyHandler(queue)
			if tc.before == nil {
				handle.OnAdd(tc.after, tc.initial)
			} else {
				handle.OnUpdate(tc.before, tc.after)
			}
			if c.get("shop", "p") != tc.after {
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
	p, recreated := newPropagationPolicy("p"), newPropagationPolicy("p")
	recreated.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-recreated"}
	tests := map[string]struct {
		deliver func(toolscache.ResourceEventHandler)
		closed  bool
		want    []templateRequest
	}{
		"a deleted policy": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(p) },
			want:    []templateRequest{webRef.request(policy.TemplateChanged)},
		},
		"a tombstone of a policy": {
			deliver: func(h toolscache.ResourceEventHandler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: p})
			},
			want: []templateRequest{webRef.request(policy.TemplateChanged)},
		},
		"a policy that was created again": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnUpdate(p, recreated) },
			want:    []templateRequest{webRef.request(policy.TemplateChanged)},
		},
		"not before the controller of templates starts": {
			deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(p) }, closed: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queue, policies := newQueue[templateRequest](t), newQueue[reconcile.Request](t)
			s := &policySource{scope: policyScopes()[0], catalog: newPolicyCatalog(), queue: newTemplateQueue(), templatesOf: func(id string) []templateRef {
				if id != "id-p" {
					return nil
				}
				return []templateRef{webRef}
			}}
			if !test.closed {
				s.queue.open(queue)
			}
			test.deliver(s.newPolicyHandler(policies))
			if diff := cmp.Diff(test.want, taken(queue)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}
