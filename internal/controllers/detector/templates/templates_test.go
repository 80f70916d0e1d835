package templates

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func TestRefsOfSameTemplateAreEqual(t *testing.T) {
	web := NewRef(deployments, "shop", "web")
	object := web.Stub(map[string]string{"app": "web"})
	if got := object.GetLabels()["app"]; got != "web" {
		t.Errorf("the stub has the label %q", got)
	}
	tests := map[string]Ref{
		"of an object": RefOf(object.GroupVersionKind(), object),
		"of a binding": RefFromBinding(&workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}),
	}
	for name, got := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(web, got); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
		})
	}
	if got := web.String(); got != "Deployment shop/web" {
		t.Errorf("text %q", got)
	}
}

func TestQueueIsUsableOnceOpen(t *testing.T) {
	queue := NewQueue()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := queue.WaitUntilOpen(stopped); !errors.Is(err, context.Canceled) || queue.IsOpen() {
		t.Errorf("before the queue is open: open %v, error %v", queue.IsOpen(), err)
	}
	inner := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer inner.ShutDown()
	queue.Open(inner)
	if err := queue.WaitUntilOpen(t.Context()); err != nil || !queue.IsOpen() {
		t.Errorf("after the queue was opened: open %v, error %v", queue.IsOpen(), err)
	}
	web := Request{NewRef(deployments, "shop", "web"), policy.TemplateChanged}
	queue.Add(web, web)
	queue.AddAfter(web, time.Hour)
	if got, _ := inner.Get(); got != web || inner.Len() != 0 {
		t.Errorf("queued %v and %d more", got, inner.Len())
	}
}

func TestPolicyRequestsAreBehindChangesByUsers(t *testing.T) {
	inner := priorityqueue.New[Request]("test")
	defer inner.ShutDown()
	queue := NewQueue()
	queue.Open(inner)
	db, web := NewRef(deployments, "shop", "db"), NewRef(deployments, "shop", "web")
	queue.AddLowPriority(policy.PolicyChanged, db)
	queue.Add(Request{web, policy.TemplateChanged})
	var got []Request
	for range 2 {
		request, _ := inner.Get()
		inner.Done(request)
		got = append(got, request)
	}
	if diff := cmp.Diff([]Request{{web, policy.TemplateChanged}, {db, policy.PolicyChanged}}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
