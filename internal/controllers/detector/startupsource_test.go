package detector

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

func newQueue[T comparable](t *testing.T) loop.Queue[T] {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[T]())
	t.Cleanup(queue.ShutDown)
	return queue
}

// taken removes and returns the queued items.
func taken[T comparable](queue loop.Queue[T]) []T {
	var all []T
	for queue.Len() > 0 {
		one, _ := queue.Get()
		queue.Done(one)
		all = append(all, one)
	}
	return all
}

func TestAwaitedObjectsQueueRequestsOnce(t *testing.T) {
	shopOverride := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
	bound := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		}},
	}
	blocked := newRef(deployments, "shop", "blocked").request(policy.PolicyChanged)
	refused := newRef(deployments, "shop", "refused").request(policy.TemplateChanged)
	quota := func(cpu string) *policyv1alpha1.FederatedResourceQuota {
		created := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
		created.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return created
	}
	tests := map[string]struct {
		deliver func(*startupSource)
		want    []templateRequest
	}{
		"a raised quota queues the requests that it refused": {
			deliver: func(s *startupSource) { s.newQuotaHandler().OnUpdate(quota("1"), quota("2")) }, want: []templateRequest{refused},
		},
		"a deleted quota queues the requests that it refused": {
			deliver: func(s *startupSource) { s.newQuotaHandler().OnDelete(quota("1")) }, want: []templateRequest{refused},
		},
		"a lowered quota queues nothing": {
			deliver: func(s *startupSource) { s.newQuotaHandler().OnUpdate(quota("2"), quota("1")) },
		},
		"an override policy queues the requests that wait for it": {
			deliver: func(s *startupSource) { s.newOverrideHandler().OnAdd(shopOverride, false) }, want: []templateRequest{blocked},
		},
		"an override policy of another scope queues nothing": {
			deliver: func(s *startupSource) {
				s.newOverrideHandler().OnAdd(&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "o"}}, false)
			},
		},
		"a deleted binding queues its template": {
			deliver: func(s *startupSource) { s.newBindingHandler().OnDelete(bound) },
			want:    []templateRequest{webRef.request(policy.TemplateChanged)},
		},
		"a tombstone of a binding counts as a deletion": {
			deliver: func(s *startupSource) {
				s.newBindingHandler().OnDelete(toolscache.DeletedFinalStateUnknown{Obj: bound})
			},
			want: []templateRequest{webRef.request(policy.TemplateChanged)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queue := newQueue[templateRequest](t)
			s := newStartupSource(startupConfig{queue: newTemplateQueue(), awaitingObject: newWaitingRequests(), events: loop.NewEvents(record.NewFakeRecorder(10))})
			s.queue.open(queue)
			s.awaitingObject.add(client.ObjectKeyFromObject(shopOverride), blocked)
			s.awaitingObject.add(quotaKey("shop"), refused)
			test.deliver(s)
			if diff := cmp.Diff(test.want, taken(queue)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandlerSync(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	registered := newHandlerSync("Things")
	registered.hasSynced = func() bool { return true }
	close(registered.registered)
	tests := map[string]struct {
		sync *handlerSync
		ctx  context.Context
		want error
	}{
		"a handler in sync": {registered, t.Context(), nil},
		"a handler without watch when the manager stops": {newHandlerSync("Things"), stopped, nil},
		"a handler that is not in sync in time":          {newHandlerSync("Things"), expired, errNotSynced},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.sync.waitForSync(test.ctx); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestStartupWaitsForHandlersThatAreNotRegisteredYet(t *testing.T) {
	policies := newHandlerSync("PropagationPolicies")
	policies.hasSynced = func() bool { return true }
	close(policies.registered)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := newStartupSource(startupConfig{
		informers: &informertest.FakeInformers{Scheme: scheme}, queue: newTemplateQueue(), initial: newOldTemplates(),
		policySyncs: []*handlerSync{policies},
	})
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if err := s.WaitForSync(expired); !errors.Is(err, errNotSynced) {
		t.Errorf("before the start: error %v", err)
	}
	if err := s.Start(t.Context(), newQueue[templateRequest](t)); err != nil {
		t.Fatal(err)
	}
	for _, watch := range s.watches {
		select {
		case <-watch.sync.registered:
		default:
			t.Errorf("%s are not watched after the start", watch.sync.name)
		}
	}
	if !s.queue.isOpen() {
		t.Error("the queue is not open after the start")
	}
}
