package quotaenforcement

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var shop = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop"}}

func newQuota(name string, resources ...corev1.ResourceName) *policyv1alpha1.FederatedResourceQuota {
	created := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	created.Spec.Overall = corev1.ResourceList{}
	for _, each := range resources {
		created.Spec.Overall[each] = resource.MustParse("10")
	}
	return created
}

func newBinding(name string, replicas int32) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: replicas}}
	bound.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}
	return bound
}

func newStore(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(newQuota("")).Build()
}

func newReconciler(karmada client.Client) *reconciler {
	return &reconciler{period: time.Minute, karmada: karmada, events: loop.NewEvents(record.NewFakeRecorder(10))}
}

func describeQuotas(ctx context.Context, from client.Reader) (string, error) {
	quotas := &policyv1alpha1.FederatedResourceQuotaList{}
	err := from.List(ctx, quotas)
	slices.SortFunc(quotas.Items, func(a, b policyv1alpha1.FederatedResourceQuota) int { return len(a.Name) - len(b.Name) })
	text := ""
	for i := range quotas.Items {
		status := &quotas.Items[i].Status
		text += fmt.Sprintf("%s: %d resources, cpu %s of %s\n", quotas.Items[i].Name, len(status.OverallUsed), status.OverallUsed.Cpu(),
			status.Overall.Cpu())
	}
	return text, err
}

func TestUsageOfANamespace(t *testing.T) {
	elsewhere := newBinding("other", 100)
	elsewhere.Namespace = "bank"
	terminating := newBinding("old", 2)
	terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, []string{"karmada.io/binding"}
	store := newStore(t, newQuota("team", corev1.ResourceCPU), newQuota("storage", corev1.ResourceCPU, corev1.ResourceMemory, "pods"),
		newBinding("web", 3), newBinding("api", 4), terminating, elsewhere)
	result, err := newReconciler(store).Reconcile(t.Context(), shop)
	if err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("result %v, %v; want another pass after the period", result, err)
	}
	got, err := describeQuotas(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("team: 1 resources, cpu 4500m of 10\nstorage: 2 resources, cpu 4500m of 10\n", got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestNamespaceWithoutQuotasIsNotRepeated(t *testing.T) {
	if result, err := newReconciler(newStore(t, newBinding("web", 3))).Reconcile(t.Context(), shop); err != nil || result.RequeueAfter != 0 {
		t.Errorf("result %v, %v", result, err)
	}
}

func TestUsageSurvivesCrashesAroundWrites(t *testing.T) {
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			return newStore(t, newQuota("team", corev1.ResourceCPU), newQuota("second", corev1.ResourceCPU), newBinding("web", 3))
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := newReconciler(karmada)
			return func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, shop)
				return err
			}
		},
		FinalState: describeQuotas,
	}.Run(t)
}

func TestTriggers(t *testing.T) {
	scaled := newBinding("web", 4)
	scaled.Generation = 2
	annotated := newBinding("web", 3)
	annotated.Generation = 2
	limited := newQuota("team", corev1.ResourceCPU)
	limited.Generation = 2
	edited := newQuota("team")
	edited.Status.OverallUsed = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	handlers := struct {
		quota, binding interface {
			Create(context.Context, event.CreateEvent, queue)
			Update(context.Context, event.UpdateEvent, queue)
			Delete(context.Context, event.DeleteEvent, queue)
		}
	}{newQuotaHandler(), newBindingHandler()}
	cases := map[string]struct {
		send func(context.Context, queue)
		want bool
	}{
		"a new quota": {func(ctx context.Context, q queue) {
			handlers.quota.Create(ctx, event.CreateEvent{Object: newQuota("team")}, q)
		}, true},
		"a changed limit": {func(ctx context.Context, q queue) {
			handlers.quota.Update(ctx, event.UpdateEvent{ObjectOld: newQuota("team"), ObjectNew: limited}, q)
		}, true},
		"a usage of a user": {func(ctx context.Context, q queue) {
			handlers.quota.Update(ctx, event.UpdateEvent{ObjectOld: newQuota("team"), ObjectNew: edited}, q)
		}, true},
		"an annotation": {func(ctx context.Context, q queue) {
			handlers.quota.Update(ctx, event.UpdateEvent{ObjectOld: newQuota("team"), ObjectNew: newQuota("team")}, q)
		}, false},
		"a scheduled binding": {func(ctx context.Context, q queue) {
			handlers.binding.Create(ctx, event.CreateEvent{Object: newBinding("web", 3)}, q)
		}, true},
		"an unscheduled binding": {func(ctx context.Context, q queue) {
			handlers.binding.Create(ctx, event.CreateEvent{Object: newBinding("web", 0)}, q)
		}, false},
		"a scaled binding": {func(ctx context.Context, q queue) {
			handlers.binding.Update(ctx, event.UpdateEvent{ObjectOld: newBinding("web", 3), ObjectNew: scaled}, q)
		}, true},
		"another change": {func(ctx context.Context, q queue) {
			handlers.binding.Update(ctx, event.UpdateEvent{ObjectOld: newBinding("web", 3), ObjectNew: annotated}, q)
		}, false},
		"a deleted binding": {func(ctx context.Context, q queue) {
			handlers.binding.Delete(ctx, event.DeleteEvent{Object: newBinding("web", 3)}, q)
		}, true},
		"a binding at the start": {func(ctx context.Context, q queue) {
			handlers.binding.Create(ctx, event.CreateEvent{Object: newBinding("web", 3), IsInInitialList: true}, q)
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := &recordingQueue{TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(
				workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
			defer q.ShutDown()
			tc.send(t.Context(), q)
			if isQueued := slices.Contains(q.added, shop); isQueued != tc.want {
				t.Errorf("queued: %v, want %v", isQueued, tc.want)
			}
		})
	}
}

// recordingQueue records what is added without its delay.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []reconcile.Request
}

func (r *recordingQueue) Add(request reconcile.Request) { r.added = append(r.added, request) }

func (r *recordingQueue) AddAfter(request reconcile.Request, _ time.Duration) {
	r.added = append(r.added, request)
}
