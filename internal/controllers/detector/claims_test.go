package detector

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

func withPriority(p policy.Object, priority int32) policy.Object {
	p.PropagationSpec().Priority, p.PropagationSpec().Preemption = &priority, policyv1alpha1.PreemptAlways
	return p
}

// stored is a fake API server with one template.
type stored struct {
	client.WithWatch
	t      *testing.T
	events *record.FakeRecorder
	writes int
}

// newStored stores the template webRef with the claim of the given policy. If the policy is nil,
// the template has no claim. If failure is not nil, every patch fails.
func newStored(t *testing.T, by policy.Object, failure error) *stored {
	template := webRef.stub(nil)
	template.SetUID("uid-web")
	if by != nil {
		policy.ClaimOf(by).Apply(template)
	}
	s := &stored{t: t, events: record.NewFakeRecorder(10)}
	s.WithWatch = fake.NewClientBuilder().WithObjects(template).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, karmada client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
			if s.writes++; failure != nil {
				return failure
			}
			return karmada.Patch(ctx, object, change, options...)
		},
	}).Build()
	return s
}

// GetCached implements templateReader.
func (s *stored) GetCached(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	found := newObject(kind)
	if err := s.Get(ctx, key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

func (s *stored) template() *unstructured.Unstructured {
	s.t.Helper()
	found, err := s.GetCached(s.t.Context(), deployments, webRef.Key)
	if err != nil || found == nil {
		s.t.Fatalf("template %v, error %v", found, err)
	}
	return found
}

func (s *stored) claimID() string {
	s.t.Helper()
	claim, _ := policy.ClaimedBy(s.template())
	return claim.ID
}

// takeReasons returns the reasons of the recorded events.
func (s *stored) takeReasons() []string {
	var reasons []string
	for len(s.events.Events) > 0 {
		reasons = append(reasons, strings.Fields(<-s.events.Events)[1])
	}
	return reasons
}

func TestClaimIsOneWriteThatTheWatchRecognizes(t *testing.T) {
	p := newPropagationPolicy("p")
	tests := map[string]struct {
		by         policy.Object
		state      string
		failure    error
		writes     int
		recognized bool
		wantErr    bool
	}{
		"a template without a claim":               {writes: 1, recognized: true},
		"a template of another policy":             {by: newClusterPropagationPolicy("other"), writes: 1, recognized: true},
		"a template that has the claim":            {by: p},
		"a template that has another user's state": {by: p, state: "state", writes: 1, recognized: true},
		"a deleted template":                       {failure: apierrors.NewNotFound(schema.GroupResource{}, "web"), writes: 1},
		"a write that fails":                       {failure: errors.New("down"), writes: 1, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStored(t, test.by, test.failure)
			claimer := &claimer{karmada: s, writes: newWriteTracker()}
			claimed, err := claimer.claim(t.Context(), webRef, s.template(), p, test.state)
			if (err != nil) != test.wantErr || s.writes != test.writes || (claimed == nil) != (test.failure != nil) {
				t.Fatalf("claimed %v, %d writes, error %v", claimed, s.writes, err)
			}
			if claimed != nil && (s.claimID() != "id-p" || claimed.GetAnnotations()[policyv1alpha1.UserStateAnnotation] != test.state) {
				t.Errorf("claim %q, annotations %v", s.claimID(), claimed.GetAnnotations())
			}
			if got := claimer.writes.take(webRef, s.template()); (got != nil) != test.recognized {
				t.Errorf("recognized: %v", got)
			}
		})
	}
}

func TestOwnWritesAreRecognizedByContent(t *testing.T) {
	p := newPropagationPolicy("p")
	claimed := webRef.stub(nil)
	policy.ClaimOf(p).Apply(claimed)
	withStatus := claimed.DeepCopy()
	withStatus.Object["status"] = map[string]any{"replicas": int64(1)}
	withStatus.SetResourceVersion("7")
	relabelled := claimed.DeepCopy()
	relabelled.SetLabels(map[string]string{"a": "b"})
	tests := map[string]struct {
		delivered *unstructured.Unstructured
		failed    bool
		want      bool
	}{
		"the content that was written":        {delivered: claimed, want: true},
		"the content with another status":     {delivered: withStatus, want: true},
		"the content with a change by a user": {delivered: relabelled},
		"the content of a write that failed":  {delivered: claimed, failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := newWriteTracker()
			writes.expect(webRef, claimed, p)
			if test.failed {
				writes.delete(webRef)
			}
			if got := writes.take(webRef, test.delivered); (got != nil) != test.want {
				t.Errorf("recognized: %v", got)
			}
			if writes.take(webRef, claimed) != nil {
				t.Error("a write is recognized twice")
			}
		})
	}
}

// unclaimed returns the binding of a template, or an error.
type unclaimed struct {
	bound binding.Object
	err   error
}

// unclaimTemplate implements bindingUnclaimer.
func (u unclaimed) unclaimTemplate(context.Context, policy.Claim, templateRef) (binding.Object, error) {
	return u.bound, u.err
}

func TestRelease(t *testing.T) {
	p := newPropagationPolicy("p")
	bound := unclaimed{bound: &workv1alpha2.ResourceBinding{}}
	tests := map[string]struct {
		by       policy.Object
		bindings unclaimed
		policies []policy.Object
		want     string
		reasons  []string
		wantErr  bool
	}{
		"a propagated template that no policy selects":      {by: p, bindings: bound, reasons: []string{policyv1alpha1.EventReasonPolicyLost}},
		"a propagated template that another policy selects": {by: p, bindings: bound, policies: []policy.Object{newClusterPropagationPolicy("next")}},
		"a template without a binding":                      {by: p},
		"a template of another policy":                      {by: newPropagationPolicy("other"), bindings: bound, want: "id-other"},
		"not before the binding is released":                {by: p, bindings: unclaimed{err: errors.New("down")}, want: "id-p", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, decider := newStored(t, test.by, nil), newPolicyCatalog()
			for _, other := range test.policies {
				decider.put(other)
			}
			releaser := &releaser{karmada: s, templates: s, bindings: test.bindings, policies: decider, events: loop.NewEvents(s.events)}
			if err := releaser.release(t.Context(), policy.ClaimOf(p), webRef); (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			if got := s.claimID(); got != test.want {
				t.Errorf("claimed by %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(test.reasons, s.takeReasons()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreempt(t *testing.T) {
	strong := withPriority(newPropagationPolicy("strong"), 5)
	withoutID := withPriority(newPropagationPolicy("strong"), 5)
	withoutID.SetLabels(nil)
	conflict := apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("changed"))
	tests := map[string]struct {
		disabled bool
		by       policy.Object
		p        policy.Object
		failure  error
		want     string
		counted  int
		reasons  []string
		wantErr  bool
	}{
		"a policy of lower priority yields":         {by: newPropagationPolicy("weak"), p: strong, want: "id-strong", counted: 1, reasons: []string{policyv1alpha1.EventReasonPreemptPolicySucceed}},
		"a cluster policy yields":                   {by: newClusterPropagationPolicy("weak"), p: strong, want: "id-strong", counted: 1, reasons: []string{policyv1alpha1.EventReasonPreemptPolicySucceed}},
		"a policy of higher priority does not":      {by: withPriority(newPropagationPolicy("top"), 9), p: strong, want: "id-top"},
		"a template without a claim is not taken":   {p: strong},
		"not without the feature":                   {disabled: true, by: newPropagationPolicy("weak"), p: strong, want: "id-weak"},
		"a policy that does not preempt":            {by: newClusterPropagationPolicy("weak"), p: newPropagationPolicy("strong"), want: "id-weak"},
		"a policy without a permanent ID":           {by: newPropagationPolicy("weak"), p: withoutID, want: "id-weak", wantErr: true},
		"a stale cache is neither counted nor told": {by: newPropagationPolicy("weak"), p: strong, failure: conflict, want: "id-weak", wantErr: true},
		"a failure is counted and recorded":         {by: newPropagationPolicy("weak"), p: strong, failure: errors.New("down"), want: "id-weak", counted: 1, reasons: []string{policyv1alpha1.EventReasonPreemptPolicyFailed}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, policies, counted := newStored(t, test.by, test.failure), newPolicyCatalog(), 0
			if test.by != nil {
				policies.put(test.by)
			}
			preemptor := &preemptor{
				enabled: !test.disabled, karmada: s, templates: s, policy: policies.get, events: loop.NewEvents(s.events),
				recordPreemption: func(error) { counted++ },
			}
			if err := preemptor.preempt(t.Context(), test.p); (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			if got := s.claimID(); got != test.want || counted != test.counted {
				t.Errorf("claimed by %q after %d preemptions, want %q and %d", got, counted, test.want, test.counted)
			}
			if diff := cmp.Diff(test.reasons, s.takeReasons()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
