package deploymentreplicassyncer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
)

type queue = loop.Queue[reconcile.Request]

// newDeploymentSource returns a source that queues marked Deployments when the mark is set or their
// replicas change, and at the start of the process.
func (r *reconciler) newDeploymentSource() source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		subscription, err := r.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: deploymentKind}, watches.Subscriber{
			Handler: loop.Handlers[*unstructured.Unstructured]{
				Added: func(template *unstructured.Unstructured, isInitial bool) {
					switch {
					case !memberhpa.HasMark(template):
					case isInitial:
						loop.EnqueueLowPriority(q, 0, requestFor(template))
					default:
						q.Add(requestFor(template))
					}
				},
				Updated: func(before, after *unstructured.Unstructured) {
					if memberhpa.HasMark(after) && (!memberhpa.HasMark(before) || haveReplicasChanged(before, after)) {
						q.Add(requestFor(after))
					}
				},
			},
		})
		if err != nil {
			return fmt.Errorf("watching Deployments: %w", err)
		}
		context.AfterFunc(ctx, subscription.Close)
		return nil
	})
}

func requestFor(template *unstructured.Unstructured) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(template)}
}

func haveReplicasChanged(before, after *unstructured.Unstructured) bool {
	for _, part := range []string{"spec", "status"} {
		older, _, _ := unstructured.NestedInt64(before.Object, part, "replicas")
		newer, _, _ := unstructured.NestedInt64(after.Object, part, "replicas")
		if older != newer {
			return true
		}
	}
	return false
}

// newBindingHandler returns a handler that queues a marked Deployment when its binding is created or
// changed, because the decision also depends on the binding's status.
func (r *reconciler) newBindingHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { r.enqueueTemplate(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { r.enqueueTemplate(q, e.ObjectNew) },
	}
}

func (r *reconciler) enqueueTemplate(q queue, object client.Object) {
	bound, ok := object.(*workv1alpha2.ResourceBinding)
	if !ok {
		return
	}
	resource := bound.Spec.Resource
	if schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind) != deploymentKind {
		return
	}
	key := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
	if template, isKnown := r.getDeployment(key); !isKnown || template != nil && memberhpa.HasMark(template) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}
