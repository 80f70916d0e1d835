package detector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
)

// binderRules return fixed components and replicas, or an error.
type binderRules struct{ err error }

// Rules implements interpreter.Source.
func (r binderRules) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{
		Components: func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			return []workv1alpha2.Component{{Name: "worker", Replicas: 3}}, r.err
		},
		Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			return 2, &workv1alpha2.ReplicaRequirements{}, r.err
		},
	}
}

// priorityClasses contains the values of PriorityClasses by name.
type priorityClasses map[string]int64

// GetCached implements templateReader.
func (p priorityClasses) GetCached(_ context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	value, ok := p[key.Name]
	if kind != priorityClassKind || !ok {
		return nil, nil
	}
	class := newObject(kind)
	class.Object["value"] = value
	return class, nil
}

// claimedTemplate returns the template webRef with the claim of the policy "p".
func claimedTemplate() *unstructured.Unstructured {
	template := webRef.stub(nil)
	template.SetUID("uid-web")
	policy.ClaimOf(newPropagationPolicy("p")).Apply(template)
	return template
}

// newBinder returns a binder with a fake API server that contains the objects. If failure is not
// nil, every write returns it. writes is the number of writes.
func newBinder(t *testing.T, failure error, objects ...client.Object) (b *binder, writes *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes = new(int)
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&workv1alpha2.ResourceBinding{}, loop.BindingsByPolicy.Name, loop.BindingsByPolicy.Keys).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, loop.BindingsByPolicy.Name, loop.BindingsByPolicy.Keys).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if *writes++; failure != nil {
					return failure
				}
				return karmada.Create(ctx, object, options...)
			},
			Patch: func(ctx context.Context, karmada client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
				if *writes++; failure != nil {
					return failure
				}
				return karmada.Patch(ctx, object, change, options...)
			},
		}).Build()
	return &binder{karmada: karmada, templates: priorityClasses{"high": 100}, Rules: binderRules{}, events: loop.NewEvents(record.NewFakeRecorder(10)), now: time.Now}, writes
}

func (b *binder) mustFind(t *testing.T) binding.Object {
	t.Helper()
	found, err := b.findBinding(t.Context(), webRef)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBindWritesOnlyDifferences(t *testing.T) {
	b, writes := newBinder(t, nil)
	p, template := newPropagationPolicy("p"), claimedTemplate()
	if b.mustFind(t) != nil {
		t.Fatal("a binding exists")
	}
	if changed, err := b.bind(t.Context(), template, nil, p, ""); err != nil || !changed || *writes != 1 {
		t.Fatalf("create: changed %v, %d writes, error %v", changed, *writes, err)
	}
	bound := b.mustFind(t)
	if claim, _ := policy.ClaimedBy(bound); claim != policy.ClaimOf(p) || binding.PermanentID(bound) == "" || len(bound.GetFinalizers()) != 1 {
		t.Errorf("not created complete: %+v", bound)
	}
	if changed, err := b.bind(t.Context(), template, bound, p, ""); err != nil || changed || *writes != 1 {
		t.Errorf("without a difference: changed %v, %d writes, error %v", changed, *writes, err)
	}
	p.Spec.PropagateDeps = true
	if changed, err := b.bind(t.Context(), template, bound, p, ""); err != nil || !changed || *writes != 2 {
		t.Errorf("with a difference: changed %v, %d writes, error %v", changed, *writes, err)
	}
}

func TestRejectedCreate(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	deleted := claimedTemplate()
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	tests := map[string]struct {
		template *unstructured.Unstructured
		failure  error
		writes   int
		isStale  bool
		wantErr  bool
	}{
		"a namespace in deletion is no failure":           {failure: terminating, writes: 1},
		"a missing namespace is a stale cache":            {failure: apierrors.NewNotFound(schema.GroupResource{}, "shop"), writes: 1, isStale: true, wantErr: true},
		"a binding that the cache lacks is a stale cache": {failure: apierrors.NewAlreadyExists(schema.GroupResource{}, "web"), writes: 1, isStale: true, wantErr: true},
		"another rejection is an error":                   {failure: errors.New("down"), writes: 1, wantErr: true},
		"a template in deletion gets no binding":          {template: deleted},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, writes := newBinder(t, test.failure)
			if test.template == nil {
				test.template = claimedTemplate()
			}
			changed, err := b.bind(t.Context(), test.template, nil, newPropagationPolicy("p"), "")
			if changed || *writes != test.writes || (err != nil) != test.wantErr || loop.IsStale(err) != test.isStale {
				t.Errorf("changed %v, %d writes, error %v", changed, *writes, err)
			}
		})
	}
}

// TestRefusedBindingGetsFewerReplicas updates a binding with a change that a quota refuses.
func TestRefusedBindingGetsFewerReplicas(t *testing.T) {
	for name, change := range map[string]int32{"fewer replicas are stored": -1, "more replicas are not stored": 1} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBinder(t, nil)
			template := claimedTemplate()
			if _, err := b.bind(t.Context(), template, nil, newPropagationPolicy("p"), ""); err != nil {
				t.Fatal(err)
			}
			bound := b.mustFind(t)
			wanted := bound.BindingSpec().Replicas
			stored := wanted - change
			bound.BindingSpec().Replicas, bound.BindingSpec().PropagateDeps = stored, true
			if err := b.karmada.Update(t.Context(), bound); err != nil {
				t.Fatal(err)
			}
			b.karmada = interceptor.NewClient(b.karmada.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, karmada client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
					if data, err := change.Data(object); err != nil || strings.Contains(string(data), "propagateDeps") {
						return errors.Join(err, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: "QuotaExceeded"}})
					}
					return karmada.Patch(ctx, object, change, options...)
				},
			})
			if _, err := b.bind(t.Context(), template, bound, newPropagationPolicy("p"), ""); !quota.IsExceeded(err) {
				t.Errorf("error %v, want QuotaExceeded", err)
			}
			if got := b.mustFind(t).BindingSpec(); got.Replicas != min(wanted, stored) || !got.PropagateDeps {
				t.Errorf("%d replicas and propagateDeps %t, want %d and the stored value true", got.Replicas, got.PropagateDeps, min(wanted, stored))
			}
		})
	}
}

func TestFeaturesOfBindings(t *testing.T) {
	withClass := func(source policyv1alpha1.PriorityClassSource, name string) func(*policyv1alpha1.PropagationPolicy) {
		return func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassSource: source, PriorityClassName: name}
		}
	}
	high := withClass(policyv1alpha1.KubePriorityClass, "high")
	// answer contains the values that the features determine.
	type answer struct {
		Replicas   int32
		Components int
		Namespace  string
		Priority   int32
	}
	tests := map[string]struct {
		features bindingFeatures
		change   func(*policyv1alpha1.PropagationPolicy)
		failure  error
		want     answer
		wantErr  bool
	}{
		"replicas":                              {want: answer{Replicas: 2}},
		"components in place of replicas":       {features: bindingFeatures{multiplePodTemplates: true}, want: answer{Components: 1}},
		"the namespace of a quota":              {features: bindingFeatures{resourceQuotaEstimate: true}, want: answer{Replicas: 2, Namespace: "shop"}},
		"the value of a priority class":         {features: bindingFeatures{priorityScheduling: true}, change: high, want: answer{Replicas: 2, Priority: 100}},
		"no priority without the feature":       {change: high, want: answer{Replicas: 2}},
		"a class that does not exist":           {features: bindingFeatures{priorityScheduling: true}, change: withClass(policyv1alpha1.KubePriorityClass, "low"), wantErr: true},
		"a source that is not supported":        {features: bindingFeatures{priorityScheduling: true}, change: withClass("PodPriorityClass", "high"), wantErr: true},
		"a template that cannot be interpreted": {failure: errors.New("no number"), wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, writes := newBinder(t, nil)
			b.features, b.Rules = test.features, binderRules{test.failure}
			p := newPropagationPolicy("p")
			if test.change != nil {
				test.change(p)
			}
			_, err := b.bind(t.Context(), claimedTemplate(), nil, p, "")
			if test.wantErr {
				if err == nil || *writes != 0 {
					t.Errorf("error %v, %d writes", err, *writes)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			spec := b.mustFind(t).BindingSpec()
			got := answer{Replicas: spec.Replicas, Components: len(spec.Components)}
			if spec.ReplicaRequirements != nil {
				got.Namespace = spec.ReplicaRequirements.Namespace
			}
			if spec.SchedulePriority != nil {
				got.Priority = spec.SchedulePriority.Priority
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnclaim(t *testing.T) {
	claim := policy.ClaimOf(newPropagationPolicy("p"))
	b, writes := newBinder(t, nil)
	if bound, err := b.unclaimTemplate(t.Context(), claim, webRef); bound != nil || err != nil {
		t.Errorf("without a binding: %v, error %v", bound, err)
	}
	if _, err := b.bind(t.Context(), claimedTemplate(), nil, newPropagationPolicy("p"), ""); err != nil {
		t.Fatal(err)
	}
	claimed, err := b.templatesOf(t.Context(), claim)
	if diff := cmp.Diff([]templateRef{webRef}, claimed); diff != "" || err != nil {
		t.Errorf("templates of the policy (-want +got):\n%s, error %v", diff, err)
	}
	other := newRef(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}, "shop", "web")
	if bound, err := b.unclaimTemplate(t.Context(), claim, other); bound != nil || err != nil || *writes != 1 {
		t.Errorf("for another template of the name: %v, error %v", bound, err)
	}
	if bound, err := b.unclaimTemplate(t.Context(), claim, webRef); bound == nil || err != nil || *writes != 2 {
		t.Errorf("for the template: %v, error %v, %d writes", bound, err, *writes)
	}
	if _, stillClaimed := policy.ClaimedBy(b.mustFind(t)); stillClaimed {
		t.Error("the binding is still claimed")
	}
	if claimed, err := b.templatesOf(t.Context(), claim); len(claimed) != 0 || err != nil {
		t.Errorf("templates of the policy: %v, error %v", claimed, err)
	}
	if _, err := b.unclaimTemplate(t.Context(), claim, webRef); err != nil || *writes != 2 {
		t.Errorf("a second time: error %v, %d writes", err, *writes)
	}
}

func TestUserStateIsRecordedOnceOnBindingOfTemplate(t *testing.T) {
	b, writes := newBinder(t, nil)
	template := claimedTemplate()
	if rest, err := b.recordUserState(t.Context(), template, nil, "state"); rest != "state" || err != nil {
		t.Errorf("without a binding: the template gets %q, error %v", rest, err)
	}
	if _, err := b.bind(t.Context(), template, nil, newPropagationPolicy("p"), ""); err != nil {
		t.Fatal(err)
	}
	earlier := template.DeepCopy()
	earlier.SetUID("uid-earlier")
	for name, of := range map[string]*unstructured.Unstructured{"the template": template, "the template again": template, "an earlier template": earlier} {
		if rest, err := b.recordUserState(t.Context(), of, b.mustFind(t), "state"); rest != "" || err != nil {
			t.Errorf("of %s: the template gets %q, error %v", name, rest, err)
		}
	}
	if got := b.mustFind(t).GetAnnotations()[policyv1alpha1.UserStateAnnotation]; got != "state" || *writes != 2 {
		t.Errorf("the binding has state %q after %d writes", got, *writes)
	}
}

func TestLeftoverClaimIsRemovedFromBindingOfTemplateOnly(t *testing.T) {
	b, writes := newBinder(t, nil)
	template := claimedTemplate()
	if err := b.unclaimLeftover(t.Context(), template, nil); err != nil {
		t.Errorf("without a binding: error %v", err)
	}
	if _, err := b.bind(t.Context(), template, nil, newPropagationPolicy("p"), ""); err != nil {
		t.Fatal(err)
	}
	earlier := template.DeepCopy()
	earlier.SetUID("uid-earlier")
	if err := b.unclaimLeftover(t.Context(), earlier, b.mustFind(t)); err != nil || *writes != 1 {
		t.Errorf("for an earlier template: error %v, %d writes", err, *writes)
	}
	for range 2 {
		if err := b.unclaimLeftover(t.Context(), template, b.mustFind(t)); err != nil || *writes != 2 {
			t.Errorf("for the template: error %v, %d writes", err, *writes)
		}
	}
}

// The template of a deleted binding is gone, so that only the policy can resume the deletion.
func TestDeletedBindingFollowsSuspensionOfPolicy(t *testing.T) {
	p, template := newPropagationPolicy("p"), claimedTemplate()
	p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: new(true)}
	b, writes := newBinder(t, nil)
	if _, err := b.bind(t.Context(), template, nil, p, ""); err != nil {
		t.Fatal(err)
	}
	resumed := p.DeepCopy()
	resumed.Spec.Suspension = nil
	if err := b.suspendDeleted(t.Context(), resumed); err != nil || *writes != 1 || b.mustFind(t).BindingSpec().Suspension == nil {
		t.Errorf("a binding that is not being deleted is changed: %d writes, %v", *writes, err)
	}
	if err := b.karmada.Delete(t.Context(), b.mustFind(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.suspendDeleted(t.Context(), resumed); err != nil || *writes != 2 {
			t.Errorf("%d writes, %v", *writes, err)
		}
	}
	if suspension := b.mustFind(t).BindingSpec().Suspension; suspension != nil {
		t.Errorf("suspension %+v", suspension)
	}
}

func TestInterpretationIsNotReportedOnTheBindingOfAnotherTemplate(t *testing.T) {
	b, writes := newBinder(t, nil)
	if _, err := b.bind(t.Context(), claimedTemplate(), nil, newPropagationPolicy("p"), ""); err != nil {
		t.Fatal(err)
	}
	b.Rules = binderRules{err: errors.New("no number")}
	other := webRef.stub(nil)
	other.SetUID("uid-recreated")
	policy.ClaimOf(newPropagationPolicy("p")).Apply(other)
	_, err := b.bind(t.Context(), other, b.mustFind(t), newPropagationPolicy("p"), "")
	if *writes != 1 || len(b.mustFind(t).BindingStatus().Conditions) != 0 {
		t.Errorf("%d writes, conditions %v", *writes, b.mustFind(t).BindingStatus().Conditions)
	}
	var owner *policy.OwnerError
	if !errors.As(err, &owner) {
		t.Errorf("error %v, want an OwnerError", err)
	}
}
