// Package deploymentreplicassyncer copies the replicas that HorizontalPodAutoscalers in members decided
// to the templates of Deployments, so that the next scheduling starts with these replicas.
//
// It changes only templates whose copies keep their replicas, and only if the template, its binding and
// the statuses of all clusters describe the same state.
package deploymentreplicassyncer

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags and logs.
const Name = "deployment-replicas-syncer"

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Options configure the controller.
type Options struct {
	// Workers is the number of Deployments that are processed in parallel.
	Workers int
	// Backoff is the delay of the next pass while the statuses do not agree. Every change of the
	// Deployment or of its binding starts a pass at once.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 2, Backoff: loop.Backoff{Base: time.Second, Max: time.Minute}}
}

type reconciler struct {
	karmada client.Client
	manager *watches.Manager
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, manager *watches.Manager, o Options) error {
	r := &reconciler{karmada: mgr.GetClient(), manager: manager}
	return builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, r.newBindingHandler()).
		WatchesRawSource(r.newDeploymentSource()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. A request names a Deployment.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	template, isKnown := r.getDeployment(request.NamespacedName)
	if !isKnown {
		return loop.StaleResult(), nil
	}
	if template == nil || template.GetDeletionTimestamp() != nil || !memberhpa.HasMark(template) {
		return reconcile.Result{}, nil
	}
	bound, err := r.findBinding(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	action, replicas := memberhpa.DecideSync(template, bound)
	switch action {
	case memberhpa.WaitForStatus:
		return loop.StaleResult(), nil
	case memberhpa.CopyReplicas:
		_, err := patch.Apply(ctx, r.karmada, template.DeepCopy(), patch.Changes{Spec: map[string]any{"replicas": replicas}})
		return loop.Result(client.IgnoreNotFound(err))
	default:
		return reconcile.Result{}, nil
	}
}

// getDeployment returns a Deployment, or nil if it does not exist. isKnown is false until the
// Deployments have been listed.
func (r *reconciler) getDeployment(key types.NamespacedName) (template *unstructured.Unstructured, isKnown bool) {
	objects, isWatched := r.manager.Find(watches.ControlPlane, watches.Query{Kind: deploymentKind})
	if !isWatched {
		return nil, false
	}
	return objects.Get(key)
}

// findBinding returns the binding of a Deployment, or nil if there is none. The binding is shared with
// the cache.
func (r *reconciler) findBinding(ctx context.Context, template types.NamespacedName) (*workv1alpha2.ResourceBinding, error) {
	found, _, err := binding.Find(deploymentKind.GroupKind(), template.Name, func(name string) (binding.Object, error) {
		bound := &workv1alpha2.ResourceBinding{}
		err := r.karmada.Get(ctx, types.NamespacedName{Namespace: template.Namespace, Name: name}, bound, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return bound, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the binding of Deployment %s: %w", template, err)
	}
	bound, _ := found.(*workv1alpha2.ResourceBinding)
	return bound, nil
}
