package detector

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
)

// house is a detector over a store of objects. What it writes is counted; its
// own events do not come back, so that every pass is asked for.
type house struct {
	*detector
	t      *testing.T
	writes []string
	queue  workqueue.TypedRateLimitingInterface[request]
}

type replicaRules struct{}

func (replicaRules) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	if kind != deployments {
		return interpreter.Rules{}
	}
	return interpreter.Rules{
		Replicas: func(_ context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			replicas, _, err := unstructured.NestedInt64(template.Object, "spec", "replicas")
			return int32(replicas), nil, err
		},
	}
}

func newHouse(t *testing.T, objects ...client.Object) *house {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &house{t: t, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[request]())}
	t.Cleanup(h.queue.ShutDown)
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&workv1alpha2.ResourceBinding{}, policyIDField, policyIDs).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, policyIDField, policyIDs).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, options ...client.CreateOption) error {
				h.note("create", object)
				return karmada.Create(ctx, object, options...)
			},
			Patch: func(ctx context.Context, karmada client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
				h.note("patch", object)
				return karmada.Patch(ctx, object, change, options...)
			},
		}).Build()
	counted, err := newCounters(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	h.detector = &detector{
		options: DefaultOptions(), karmada: karmada, live: karmada, cache: &informertest.FakeInformers{Scheme: scheme},
		rules: replicaRules{}, events: observe.NewEvents(record.NewFakeRecorder(100)), counters: counted, log: logr.Discard(),
		kinds: newKinds(), policies: newCatalog(), waiting: newWaiting(), claims: newClaims(), blocked: newBlocked(),
	}
	h.kinds.add(deployments, func() {})
	h.entrance = newEntrance(h.detector, nil)
	h.entrance.queue = h.queue
	close(h.entrance.opened)
	for _, object := range objects {
		if p, ok := object.(policy.Object); ok {
			h.policies.put(p)
		}
	}
	return h
}

func (h *house) note(verb string, object client.Object) {
	kinds, _, err := h.karmada.Scheme().ObjectKinds(object)
	if err != nil {
		h.t.Fatal(err)
	}
	h.writes = append(h.writes, verb+" "+kinds[0].Kind)
}

// pass runs one pass and returns what it wrote.
func (h *house) pass(cause policy.Cause) (reconcile.Result, []string) {
	h.t.Helper()
	h.writes = nil
	result, err := templateReconciler{h.detector}.Reconcile(h.t.Context(), request{web, cause})
	if err != nil {
		h.t.Fatalf("the pass failed: %v", err)
	}
	return result, h.writes
}

func (h *house) template() *unstructured.Unstructured {
	h.t.Helper()
	found := blank(deployments)
	if err := h.karmada.Get(h.t.Context(), web.key, found); err != nil {
		h.t.Fatal(err)
	}
	return found
}

func (h *house) binding() *workv1alpha2.ResourceBinding {
	h.t.Helper()
	found := &workv1alpha2.ResourceBinding{}
	err := h.karmada.Get(h.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// change stores another version of an object, as a user does.
func (h *house) change(object client.Object) {
	h.t.Helper()
	if err := h.karmada.Update(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
	if p, ok := object.(policy.Object); ok {
		h.policies.put(p)
	}
}

// queued takes what is queued.
func (h *house) queued() []request {
	var all []request
	for h.queue.Len() > 0 {
		one, _ := h.queue.Get()
		h.queue.Done(one)
		all = append(all, one)
	}
	return all
}

var web = named(deployments, "shop", "web")

func deployment(replicas int64) *unstructured.Unstructured {
	object := blank(deployments)
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetUID("uid-web")
	object.Object["spec"] = map[string]any{"replicas": replicas}
	return object
}

func selectors(names ...string) []policyv1alpha1.ResourceSelector {
	var all []policyv1alpha1.ResourceSelector
	for _, name := range names {
		all = append(all, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name})
	}
	return all
}

func propagation(name string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Generation: 1,
			Labels:     map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
			Finalizers: []string{policyv1alpha1.PropagationPolicyControllerFinalizer},
		},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors("web")},
	}
}

func clusterPropagation(name string) *policyv1alpha1.ClusterPropagationPolicy {
	return &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1,
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors("web")},
	}
}

func claimOn(object metav1.Object) string {
	claim, _ := policy.ClaimedBy(object)
	return claim.ID
}

func expectWrites(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes %s (-want +got):\n%s", when, diff)
	}
}

func TestANewTemplateCostsOnePatchAndOneCreate(t *testing.T) {
	h := newHouse(t, deployment(2), propagation("p"))
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "of the first pass", writes, "patch Deployment", "create ResourceBinding")

	template, bound := h.template(), h.binding()
	if claimOn(template) != "id-p" || claimOn(bound) != "id-p" {
		t.Errorf("claims: template %q, binding %q", claimOn(template), claimOn(bound))
	}
	if binding.PermanentID(bound) == "" || len(bound.Finalizers) != 1 || !metav1.IsControlledBy(bound, template) {
		t.Errorf("not created whole: labels %v, finalizers %v, owners %v", bound.Labels, bound.Finalizers, bound.OwnerReferences)
	}
	if bound.Spec.Replicas != 2 || bound.Spec.Resource.ResourceVersion != template.GetResourceVersion() {
		t.Errorf("replicas %d, resourceVersion %s of %s", bound.Spec.Replicas, bound.Spec.Resource.ResourceVersion, template.GetResourceVersion())
	}
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "when all is in order", writes)

	template = template.DeepCopy()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.change(template)
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "when the template changed", writes, "patch ResourceBinding")
	if got := h.binding().Spec.Replicas; got != 5 {
		t.Errorf("replicas %d", got)
	}
}

func TestAWaitingTemplateIsFoundByANewPolicy(t *testing.T) {
	h := newHouse(t, deployment(1))
	if _, writes := h.pass(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v without a policy", writes)
	}
	h.policies.put(propagation("p"))
	if err := h.spread(t.Context(), propagation("p")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]request{{web, policy.PolicyChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Fatalf("queued (-want +got):\n%s", diff)
	}
	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "once there is a policy", writes, "patch Deployment", "create ResourceBinding")
	if got := h.waiting.within(reach{kind: deployments}); len(got) != 0 {
		t.Errorf("%v still wait", got)
	}
}

func TestATemplateIsReleasedWhenItsPolicySelectsItNoLonger(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p, clusterPropagation("fallback"))
	h.pass(policy.TemplateChanged)
	narrowed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), narrowed); err != nil {
		t.Fatal(err)
	}
	narrowed.Spec.ResourceSelectors = selectors("another")
	h.change(narrowed)

	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "of the release, binding first", writes, "patch ResourceBinding", "patch Deployment")
	if claimOn(h.template()) != "" || claimOn(h.binding()) != "" {
		t.Fatalf("claims: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
	h.pass(policy.TemplateChanged)
	if claimOn(h.template()) != "id-fallback" || claimOn(h.binding()) != "id-fallback" {
		t.Errorf("claims after the next match: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
}

func TestAPolicyThatIsOnlyUnseenReleasesNothing(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	h.policies.delete(p) // as in a view that is behind
	result, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "while the policy exists", writes)
	if result.RequeueAfter != patience {
		t.Errorf("it looks again after %s", result.RequeueAfter)
	}
	if err := h.karmada.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.pass(policy.TemplateChanged)
	if claimOn(h.template()) != "" || claimOn(h.binding()) != "" {
		t.Errorf("claims of a policy that is gone: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
}

func TestADeletedPolicyLetsGoAndThenGoes(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.writes = nil
	r := &policyReconciler{detector: h.detector, scope: scopes[0]}
	if _, err := r.Reconcile(t.Context(), requestFor(p)); err != nil {
		t.Fatal(err)
	}
	expectWrites(t, "of the deletion", h.writes, "patch ResourceBinding", "patch Deployment", "patch PropagationPolicy")
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), &policyv1alpha1.PropagationPolicy{}); !apierrors.IsNotFound(err) {
		t.Errorf("the policy is still there: %v", err)
	}
	if claimOn(h.template()) != "" || h.binding() == nil || claimOn(h.binding()) != "" {
		t.Error("the binding has to stay, without a claim on it or on the template")
	}
}

func TestATemplateWaitsForTheOverridesOfItsPolicy(t *testing.T) {
	p := propagation("p")
	p.Spec.DependentOverrides = []string{"o"}
	h := newHouse(t, deployment(1), p)
	if _, writes := h.pass(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v before the override exists", writes)
	}
	override := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
	if err := h.karmada.Create(t.Context(), override); err != nil {
		t.Fatal(err)
	}
	h.entrance.onOverrides().OnAdd(override, false)
	if diff := cmp.Diff([]request{{web, policy.TemplateChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Fatalf("woken (-want +got):\n%s", diff)
	}
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "once the override exists", writes, "patch Deployment", "create ResourceBinding")
}

func TestALazyPolicyOnlyClaimsWhatWasWaiting(t *testing.T) {
	p := propagation("p")
	p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newHouse(t, deployment(1), p)
	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "because of the policy", writes, "patch Deployment")
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "because of our own claim", writes)

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.change(template)
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "because of the user", writes, "patch Deployment", "create ResourceBinding")
	if got := h.template().GetAnnotations()[policy.UserStateAnnotation]; got != "" {
		t.Errorf("the template still says that it was not acted upon: %q", got)
	}
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "afterwards", writes)
}

func TestALazyPolicyTakesOverABindingWithoutTouchingItsSpec(t *testing.T) {
	lazy := propagation("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	lazy.Spec.PropagateDeps = true
	first := propagation("first")
	h := newHouse(t, deployment(1), first)
	h.pass(policy.TemplateChanged)
	h.policies.put(lazy)
	template := h.template()
	policy.ClaimOf(lazy).Apply(template)
	h.change(template)

	h.pass(policy.PolicyChanged)
	h.pass(policy.TemplateChanged)
	if h.binding().Spec.PropagateDeps || claimOn(h.binding()) != "id-first" {
		t.Fatal("the binding follows before the user changed anything")
	}
	template = h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.change(template)
	h.pass(policy.TemplateChanged)
	if !h.binding().Spec.PropagateDeps || claimOn(h.binding()) != "id-lazy" {
		t.Error("the binding does not follow the user's change")
	}
}

func TestPreemption(t *testing.T) {
	preemptor := propagation("strong")
	preemptor.Spec.Preemption = policyv1alpha1.PreemptAlways
	for name, on := range map[string]bool{"a template is taken when the feature is on": true, "nothing is taken when it is off": false} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, deployment(1), clusterPropagation("weak"))
			h.options.Preemption = on
			h.pass(policy.TemplateChanged)
			h.policies.put(preemptor)
			if err := h.preempt(t.Context(), preemptor); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "id-strong", false: "id-weak"}[on]
			if got := claimOn(h.template()); got != want {
				t.Errorf("claimed by %q, want %q", got, want)
			}
			h.pass(policy.TemplateChanged)
			if got := claimOn(h.binding()); got != want {
				t.Errorf("the binding is claimed by %q, want %q", got, want)
			}
		})
	}
}

func TestABindingOfAnEarlierTemplateIsWaitedFor(t *testing.T) {
	h := newHouse(t, deployment(1), propagation("p"))
	h.pass(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	again := deployment(1)
	again.SetUID("uid-again")
	if err := h.karmada.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	result, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "while the old binding is there", writes, "patch Deployment")
	if result.RequeueAfter <= 0 || result.RequeueAfter > 5*time.Second {
		t.Errorf("it looks again after %s", result.RequeueAfter)
	}
	h.entrance.onBindings().OnDelete(h.binding())
	if len(h.queued()) != 1 {
		t.Error("the end of the old binding wakes nobody")
	}
}

func TestALeftoverClaimOnABindingIsRemoved(t *testing.T) {
	h := newHouse(t, deployment(1), propagation("p"))
	h.pass(policy.TemplateChanged)
	template := h.template()
	claim, _ := policy.ClaimedBy(template)
	claim.Remove(template)
	h.change(template)
	h.policies.delete(propagation("p"))
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "without a policy", writes, "patch ResourceBinding")
	if got := claimOn(h.binding()); got != "" {
		t.Errorf("the binding is still claimed by %q", got)
	}
}

func TestATerminatingTemplateGetsNoNewBinding(t *testing.T) {
	dying := deployment(1)
	dying.SetFinalizers([]string{"example.com/keep"})
	h := newHouse(t, dying, propagation("p"))
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	h.pass(policy.TemplateChanged)
	if h.binding() != nil {
		t.Error("a binding was made for a template that goes")
	}
}
