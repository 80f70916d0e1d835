// Package cluster answers "what does the control plane hold for a member
// cluster?": its execution namespace, the taints that its health calls for, and
// the orderly removal of both when it leaves.
//
// A cluster leaves in steps that each wait for what the step before began, so
// that objects are taken out of a member that can be reached, and nothing waits
// for one that cannot.
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "cluster-controller"

// Options are what operators may tune.
type Options struct {
	// Workers is how many Clusters are worked on at once.
	Workers int
	// Forget is called with the name of a cluster that is gone.
	Forget func(name string)
	// Backoff is that of a Cluster that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Forget: func(string) {}, Backoff: queues.DefaultBackoff()}
}

type reconciler struct {
	options Options
	karmada client.Client
	live    client.Reader
	events  *observe.Events
	now     func() time.Time
}

// Add registers the controller with a manager that has the index of bindings by
// cluster.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}).
		Watches(executionSpace(""), onExecutionSpace()).
		WithOptions(queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.options.Forget(request.Name)
			return r.letRestGo(ctx, request.Name)
		}
		return reconcile.Result{}, err
	}
	if cluster.DeletionTimestamp != nil {
		return r.remove(ctx, cluster)
	}
	if err := r.ensureExecutionSpace(ctx, cluster); err != nil {
		r.events.Failed(cluster, clusterv1alpha1.EventReasonCreateExecutionSpaceFailed, err)
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, quiet(r.ensureMarks(ctx, cluster))
}

// onExecutionSpace looks at a cluster when its namespace goes: somebody deleted it,
// or the cluster leaves, and may have left already, even before this process began.
func onExecutionSpace() handler.EventHandler {
	queue := func(space client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if cluster, ok := work.ClusterOf(space.GetName()); ok {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: cluster}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.Object.GetDeletionTimestamp() != nil {
				queue(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectNew.GetDeletionTimestamp() != nil || requiresVerdicts(e.ObjectOld) && !requiresVerdicts(e.ObjectNew) {
				queue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue(e.Object, q)
		},
	}
}

// ensureExecutionSpace makes the namespace that holds the cluster's Works. It says that
// agents need a verdict to delete the objects of a Work.
func (r *reconciler) ensureExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	name := work.ExecutionNamespace(cluster.Name)
	namespace := executionSpace(name)
	err := r.karmada.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil {
		return r.requireVerdicts(ctx, namespace)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
		Annotations: map[string]string{workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired},
	}}
	if err := r.karmada.Create(ctx, created); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating execution namespace of cluster %q: %w", cluster.Name, err)
	}
	r.events.Decided(cluster, clusterv1alpha1.EventReasonCreateExecutionSpaceSucceed, "Created execution namespace %s", name)
	return nil
}

// requireVerdicts adds the annotation to a namespace that was made without it.
func (r *reconciler) requireVerdicts(ctx context.Context, stored client.Object) error {
	if stored.GetDeletionTimestamp() != nil || requiresVerdicts(stored) {
		return nil
	}
	marked, _ := stored.DeepCopyObject().(client.Object)
	annotations := maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha1.DeletionVerdictsAnnotation] = workv1alpha1.DeletionVerdictsRequired
	marked.SetAnnotations(annotations)
	_, err := patch.Object(ctx, r.karmada, stored, marked)
	return err
}

func requiresVerdicts(space client.Object) bool {
	return space.GetAnnotations()[workv1alpha1.DeletionVerdictsAnnotation] == workv1alpha1.DeletionVerdictsRequired
}

// ensureMarks writes finalizer and taints at once.
func (r *reconciler) ensureMarks(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	marked := cluster.DeepCopy()
	controllerutil.AddFinalizer(marked, clusterv1alpha1.ClusterControllerFinalizer)
	marked.Spec.Taints = domain.HealthTaints(cluster, metav1.NewTime(r.now()))
	_, err := patch.Object(ctx, r.karmada, cluster, marked)
	switch {
	case err == nil:
		r.tellTaints(cluster, marked)
	case !apierrors.IsConflict(err):
		r.events.Failed(cluster, clusterv1alpha1.EventReasonTaintClusterFailed, err)
	}
	return err
}

// quiet keeps a write that lost a race out of the error log: the newer object is
// on its way here.
func quiet(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
