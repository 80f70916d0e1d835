// Package cluster creates the execution namespace, sets the taints for the health of the cluster,
// and removes the objects in order when the cluster is deleted.
//
// A cluster is removed in steps, and each step waits for the result of the previous one. Objects
// are deleted in a member only if the member is reachable, and no step waits for a member that is
// not reachable.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags, logs and events.
const Name = "cluster-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of Clusters that are processed in parallel.
	Workers int
	// OnDeleted is called with the name of a deleted cluster.
	OnDeleted func(name string)
	// Backoff is the backoff for Clusters that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, OnDeleted: func(string) {}, Backoff: loop.DefaultBackoff()}
}

type reconciler struct {
	options Options
	karmada client.Client
	live    client.Reader
	events  *loop.Events
	now     func() time.Time
}

// Add registers the controller with a manager, and adds the index of bindings by cluster.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now,
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges),
	}
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByCluster); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}).
		Watches(newUnstructuredNamespace(""), newExecutionNamespaceHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.options.OnDeleted(request.Name)
			return r.cleanUpDeletedCluster(ctx, request.Name)
		}
		return reconcile.Result{}, err
	}
	if cluster.DeletionTimestamp != nil {
		return r.removeCluster(ctx, cluster)
	}
	if err := r.ensureExecutionNamespace(ctx, cluster); err != nil {
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonCreateExecutionSpaceFailed, err)
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, ignoreConflict(r.ensureFinalizerAndTaints(ctx, cluster))
}

// newExecutionNamespaceHandler returns a handler that queues a cluster when its execution namespace
// is deleted or loses the annotation that requires permissions for deletions. It also queues the
// cluster of a namespace whose deletion started before this process: the Cluster may no longer
// exist, and then no event of the Cluster queues it.
func newExecutionNamespaceHandler() handler.EventHandler {
	enqueue := func(namespace client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if cluster, ok := work.ClusterOf(namespace.GetName()); ok {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: cluster}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.Object.GetDeletionTimestamp() != nil {
				enqueue(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectNew.GetDeletionTimestamp() != nil || requiresPermissions(e.ObjectOld) && !requiresPermissions(e.ObjectNew) {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(e.Object, q)
		},
	}
}

// ensureExecutionNamespace creates the namespace that contains the Works of the cluster. An
// annotation of this namespace tells agents that they need a permission of the control plane before
// they delete the objects of a Work.
func (r *reconciler) ensureExecutionNamespace(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	name := work.ExecutionNamespace(cluster.Name)
	namespace := newUnstructuredNamespace(name)
	err := r.karmada.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil {
		return r.requirePermissions(ctx, namespace)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading execution namespace of cluster %q: %w", cluster.Name, err)
	}
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
		Annotations: map[string]string{workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired},
	}}
	if err := r.karmada.Create(ctx, created); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating execution namespace of cluster %q: %w", cluster.Name, err)
	}
	r.events.RecordDecision(cluster, clusterv1alpha1.EventReasonCreateExecutionSpaceSucceed, "Created execution namespace %s", name)
	return nil
}

// requirePermissions adds the annotation that requires permissions for deletions to a namespace
// that does not have it.
func (r *reconciler) requirePermissions(ctx context.Context, stored client.Object) error {
	if stored.GetDeletionTimestamp() != nil || requiresPermissions(stored) {
		return nil
	}
	updated, _ := stored.DeepCopyObject().(client.Object)
	annotations := maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha1.DeletionVerdictsAnnotation] = workv1alpha1.DeletionVerdictsRequired
	updated.SetAnnotations(annotations)
	_, err := patch.Object(ctx, r.karmada, stored, updated)
	return err
}

func requiresPermissions(namespace client.Object) bool {
	return namespace.GetAnnotations()[workv1alpha1.DeletionVerdictsAnnotation] == workv1alpha1.DeletionVerdictsRequired
}

// ensureFinalizerAndTaints writes the finalizer and the taints of a Cluster in one patch.
func (r *reconciler) ensureFinalizerAndTaints(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	updated := cluster.DeepCopy()
	controllerutil.AddFinalizer(updated, clusterv1alpha1.ClusterControllerFinalizer)
	updated.Spec.Taints = domain.HealthTaints(cluster, metav1.NewTime(r.now()))
	_, err := patch.Object(ctx, r.karmada, cluster, updated)
	switch {
	case err == nil:
		r.recordTaintEvents(cluster, updated)
	case !apierrors.IsConflict(err):
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonTaintClusterFailed, err)
	}
	return err
}

// ignoreConflict returns nil for a conflict and any other error unchanged. A conflict is neither
// logged nor retried, because the watch queues the newer object.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
