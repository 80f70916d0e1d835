package triggers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	webRef      = templates.NewRef(deployments, "shop", "web")
)

func deployment(replicas int64) *unstructured.Unstructured {
	object := webRef.Stub(nil)
	object.Object["spec"] = map[string]any{"replicas": replicas}
	return object
}

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
	blocked := templates.NewRef(deployments, "shop", "blocked").Request(policy.PolicyChanged)
	tests := map[string]struct {
		deliver func(*Startup)
		want    []templates.Request
	}{
		"an override policy queues the requests that wait for it": {
			deliver: func(s *Startup) { s.OnOverrides().OnAdd(shopOverride, false) }, want: []templates.Request{blocked},
		},
		"an override policy of another scope queues nothing": {
			deliver: func(s *Startup) {
				s.OnOverrides().OnAdd(&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "o"}}, false)
			},
		},
		"a deleted binding queues its template": {
			deliver: func(s *Startup) { s.OnBindings().OnDelete(bound) },
			want:    []templates.Request{webRef.Request(policy.TemplateChanged)},
		},
		"a tombstone of a binding counts as a deletion": {
			deliver: func(s *Startup) { s.OnBindings().OnDelete(toolscache.DeletedFinalStateUnknown{Obj: bound}) },
			want:    []templates.Request{webRef.Request(policy.TemplateChanged)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queue := newQueue[templates.Request](t)
			s := NewStartup(StartupConfig{Queue: templates.NewQueue(), AwaitingOverride: waiting.NewRequests(), Events: loop.NewEvents(record.NewFakeRecorder(10))})
			s.Queue.Open(queue)
			s.AwaitingOverride.Add(client.ObjectKeyFromObject(shopOverride), blocked)
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
	registered := NewHandlerSync("Things")
	registered.hasSynced = func() bool { return true }
	close(registered.registered)
	tests := map[string]struct {
		sync *HandlerSync
		ctx  context.Context
		want error
	}{
		"a handler in sync": {registered, t.Context(), nil},
		"a handler without watch when the manager stops": {NewHandlerSync("Things"), stopped, nil},
		"a handler that is not in sync in time":          {NewHandlerSync("Things"), expired, errNotSynced},
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
	policies := NewHandlerSync("PropagationPolicies")
	policies.hasSynced = func() bool { return true }
	close(policies.registered)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStartup(StartupConfig{
		Informers: &informertest.FakeInformers{Scheme: scheme}, Queue: templates.NewQueue(), Initial: waiting.NewInitial(),
		PolicySyncs: []*HandlerSync{policies},
	})
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if err := s.WaitForSync(expired); !errors.Is(err, errNotSynced) {
		t.Errorf("before the start: error %v", err)
	}
	if err := s.Start(t.Context(), newQueue[templates.Request](t)); err != nil {
		t.Fatal(err)
	}
	for _, watch := range s.watches {
		select {
		case <-watch.sync.registered:
		default:
			t.Errorf("%s are not watched after the start", watch.sync.name)
		}
	}
	if !s.Queue.IsOpen() {
		t.Error("the queue is not open after the start")
	}
}
