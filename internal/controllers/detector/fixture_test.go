package detector

import (
	"context"
	"testing"

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
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// fixture is a detector with a fake API server. The fake records all writes and sends
// no watch events, so the tests call every reconcile themselves.
type fixture struct {
	*detector
	t        *testing.T
	karmada  client.WithWatch
	registry *prometheus.Registry
	writes   []string
	queue    loop.Queue[templateRequest]
	recorder *record.FakeRecorder
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

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &fixture{t: t, recorder: record.NewFakeRecorder(100), queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[templateRequest]())}
	t.Cleanup(h.queue.ShutDown)
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).
		WithIndex(&workv1alpha2.ResourceBinding{}, loop.BindingsByPolicy.Name, loop.BindingsByPolicy.Keys).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, loop.BindingsByPolicy.Name, loop.BindingsByPolicy.Keys).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, options ...client.CreateOption) error {
				h.recordWrite("create", object)
				return karmada.Create(ctx, object, options...)
			},
			Patch: func(ctx context.Context, karmada client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
				h.recordWrite("patch", object)
				return karmada.Patch(ctx, object, change, options...)
			},
			SubResourceUpdate: func(ctx context.Context, karmada client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
				h.recordWrite("update "+name+" of", object)
				return karmada.SubResource(name).Update(ctx, object, options...)
			},
		}).Build()
	h.karmada, h.registry = karmada, prometheus.NewRegistry()
	counters, err := newCounters(h.registry)
	if err != nil {
		t.Fatal(err)
	}
	h.detector = newDetector(dependencies{
		karmada: karmada, karmadaReader: karmada, cache: &informertest.FakeInformers{Scheme: scheme}, templateReader: template.NewReader(nil, karmada),
		rules: replicaRules{}, events: loop.NewEvents(h.recorder), counters: counters, log: logr.Discard(),
	}, DefaultOptions())
	h.templateReconciler.noMatch.grace = 0
	h.watchedKinds.Add(deployments, func() {})
	h.detector.queue.open(h.queue)
	for _, object := range objects {
		if p, ok := object.(policy.Object); ok {
			h.policies.put(p)
		}
	}
	return h
}

func (f *fixture) recordWrite(verb string, object client.Object) {
	kind, err := f.karmada.GroupVersionKindFor(object)
	if err != nil {
		f.t.Fatal(err)
	}
	f.writes = append(f.writes, verb+" "+kind.Kind)
}

// reconcile runs one reconcile of the template webRef and returns the writes.
func (f *fixture) reconcile(cause policy.Trigger) (reconcile.Result, []string) {
	f.t.Helper()
	f.writes = nil
	result, err := f.templateReconciler.Reconcile(f.t.Context(), webRef.request(cause))
	if err != nil {
		f.t.Fatalf("the reconcile failed: %v", err)
	}
	return result, f.writes
}

func (f *fixture) template() *unstructured.Unstructured {
	f.t.Helper()
	found := newObject(deployments)
	if err := f.karmada.Get(f.t.Context(), webRef.Key, found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

func (f *fixture) binding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	found := &workv1alpha2.ResourceBinding{}
	err := f.karmada.Get(f.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// update stores another version of an object, as a user would.
func (f *fixture) update(object client.Object) {
	f.t.Helper()
	if err := f.karmada.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
	if p, ok := object.(policy.Object); ok {
		f.policies.put(p)
	}
}

// takeEvents removes and returns the recorded events.
func (f *fixture) takeEvents() []string {
	var all []string
	for {
		select {
		case one := <-f.recorder.Events:
			all = append(all, one)
		default:
			return all
		}
	}
}

// delete deletes an object even if the object has finalizers.
func (f *fixture) delete(object client.Object) {
	f.t.Helper()
	if err := f.karmada.Patch(f.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		f.t.Fatal(err)
	}
	if err := client.IgnoreNotFound(f.karmada.Delete(f.t.Context(), object)); err != nil {
		f.t.Fatal(err)
	}
	if p, ok := object.(policy.Object); ok {
		f.policies.delete(p)
	}
}

// takeQueue removes and returns the queued requests.
func (f *fixture) takeQueue() []templateRequest {
	var all []templateRequest
	for f.queue.Len() > 0 {
		one, _ := f.queue.Get()
		f.queue.Done(one)
		all = append(all, one)
	}
	return all
}

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

var webRef = newRef(deployments, "shop", "web")

func deployment(replicas int64) *unstructured.Unstructured {
	object := newObject(deployments)
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

func propagationPolicy(name string) *policyv1alpha1.PropagationPolicy {
	p := newPropagationPolicy(name)
	p.Finalizers = []string{policyv1alpha1.PropagationPolicyControllerFinalizer}
	return p
}

func claimIDOf(object metav1.Object) string {
	claim, _ := policy.ClaimedBy(object)
	return claim.ID
}

func expectWrites(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes %s (-want +got):\n%s", when, diff)
	}
}

// newPropagationPolicy returns a policy in the namespace shop that selects the Deployment shop/web. Its
// permanent ID is "id-" and its name.
func newPropagationPolicy(name string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Generation: 1,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		}},
	}
}

// newClusterPropagationPolicy returns the policy of the other scope that selects the same Deployment.
func newClusterPropagationPolicy(name string) *policyv1alpha1.ClusterPropagationPolicy {
	return &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1,
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: newPropagationPolicy(name).Spec,
	}
}

// withPriorityClass sets the newPriorityClass of a policy and returns the policy.
func withPriorityClass(p policy.Object, class string) policy.Object {
	p.PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class,
	}
	return p
}

// newPriorityClass returns a PriorityClass with the given value.
func newPriorityClass(name string, value int64) *unstructured.Unstructured {
	class := &unstructured.Unstructured{Object: map[string]any{"value": value}}
	class.SetAPIVersion("scheduling.k8s.io/v1")
	class.SetKind("PriorityClass")
	class.SetName(name)
	return class
}
