package detector

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

func TestRefsOfSameTemplateAreEqual(t *testing.T) {
	web := newRef(deployments, "shop", "web")
	object := web.stub(map[string]string{"app": "web"})
	if got := object.GetLabels()["app"]; got != "web" {
		t.Errorf("the stub has the label %q", got)
	}
	tests := map[string]templateRef{
		"of an object": refOf(object.GroupVersionKind(), object),
		"of a binding": refFromBinding(&workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}),
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
	queue := newTemplateQueue()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := queue.waitUntilOpen(stopped); !errors.Is(err, context.Canceled) || queue.isOpen() {
		t.Errorf("before the queue is open: open %v, error %v", queue.isOpen(), err)
	}
	inner := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[templateRequest]())
	defer inner.ShutDown()
	queue.open(inner)
	if err := queue.waitUntilOpen(t.Context()); err != nil || !queue.isOpen() {
		t.Errorf("after the queue was opened: open %v, error %v", queue.isOpen(), err)
	}
	web := templateRequest{newRef(deployments, "shop", "web"), policy.TemplateChanged}
	queue.add(web, web)
	queue.addAfter(web, time.Hour)
	if got, _ := inner.Get(); got != web || inner.Len() != 0 {
		t.Errorf("queued %v and %d more", got, inner.Len())
	}
}

func TestPolicyRequestsAreBehindChangesByUsers(t *testing.T) {
	inner := priorityqueue.New[templateRequest]("test")
	defer inner.ShutDown()
	queue := newTemplateQueue()
	queue.open(inner)
	db, web := newRef(deployments, "shop", "db"), newRef(deployments, "shop", "web")
	queue.addLowPriority(policy.PolicyChanged, db)
	queue.add(templateRequest{web, policy.TemplateChanged})
	var got []templateRequest
	for range 2 {
		request, _ := inner.Get()
		inner.Done(request)
		got = append(got, request)
	}
	if diff := cmp.Diff([]templateRequest{{web, policy.TemplateChanged}, {db, policy.PolicyChanged}}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
