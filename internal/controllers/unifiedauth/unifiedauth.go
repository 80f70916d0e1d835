// Package unifiedauth answers "may a user of the control plane go through it to a
// member?": it keeps, in each member, the role that lets the control plane's proxy
// act for those whom a ClusterRoleBinding of the control plane gives the way there.
//
// Role and binding go to members in Works of their own, which the Cluster owns.
// Works are never deleted here: they leave with the Cluster, and one that loses
// its reference to the impersonator keeps what it has. Where a binding keeps the
// Work of an object of that name, this controller stays out.
package unifiedauth

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in logs and events.
const Name = "unified-auth-controller"

// lagDelay is how soon to look again at what a watch has not brought yet.
const lagDelay = 20 * time.Millisecond

// Options are what operators may tune.
type Options struct {
	// Workers is how many Clusters are worked on at once.
	Workers int
	// Backoff is that of a Cluster that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: queues.DefaultBackoff()}
}

type reconciler struct {
	karmada client.Client
	events  *observe.Events
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(),
		events:  observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	everyCluster := handler.EnqueueRequestsFromMapFunc(r.everyCluster)
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(referenced())).
		Watches(empty(namespaces), handler.EnqueueRequestsFromMapFunc(clusterOfSpace), builder.WithPredicates(appeared())).
		Watches(&workv1alpha1.Work{}, r.onWork()).
		Watches(empty(clusterRoles), everyCluster, builder.WithPredicates(ruled())).
		Watches(empty(clusterRoleBindings), everyCluster, builder.WithPredicates(r.bound())).
		WithOptions(queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster, space := &clusterv1alpha1.Cluster{}, empty(namespaces)
	// What is missing leads back here when it appears.
	if err := r.read(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil || cluster.Spec.ImpersonatorSecretRef == nil {
		return reconcile.Result{}, nil
	}
	if err := r.read(ctx, types.NamespacedName{Name: work.ExecutionNamespace(cluster.Name)}, space); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if space.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	return r.conclude(cluster, r.sync(ctx, cluster))
}

// sync brings the Works of both objects up to date, and tells of a change.
func (r *reconciler) sync(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	subjects, err := r.subjects(ctx, cluster.Name)
	if err != nil {
		return err
	}
	changed := false
	for _, object := range []runtime.Object{
		impersonation.Role(subjects), impersonation.Binding(cluster.Spec.ImpersonatorSecretRef.Namespace),
	} {
		manifest, err := manifestOf(object)
		if err != nil {
			return err
		}
		written, err := r.ensure(ctx, cluster, manifest)
		if err != nil {
			return err
		}
		changed = changed || written
	}
	if changed {
		r.events.Decided(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigSucceed,
			"The control plane may act in the cluster for %d users, %d service accounts and %d groups",
			len(subjects.Users), len(subjects.ServiceAccounts), len(subjects.Groups))
	}
	return nil
}

func manifestOf(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", object, err)
	}
	// A merge patch takes null for the wish to have nothing there, and a Work that
	// says null would never be what is stored.
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	return &unstructured.Unstructured{Object: content}, nil
}

// ensure brings the Work of one object up to date, and reports whether it wrote. A
// Work that is not ours to change, or in deletion, is left: its end leads back here.
func (r *reconciler) ensure(ctx context.Context, cluster *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured) (written bool, err error) {
	stored := &workv1alpha1.Work{}
	key := types.NamespacedName{Namespace: work.ExecutionNamespace(cluster.Name), Name: work.Name(manifest.GetKind(), "", manifest.GetName())}
	err = r.read(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		err = r.create(ctx, cluster, manifest)
		return err == nil, err
	}
	if err != nil || !ours(stored, cluster.UID) {
		return false, err
	}
	desired, err := render(cluster, manifest, stored.Labels[workv1alpha1.WorkPermanentIDLabel])
	if err != nil {
		return false, err
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return false, fmt.Errorf("merging Work %s: %w", key, err)
	}
	if !changed {
		return false, nil
	}
	return patch.Object(ctx, r.karmada, stored, merged)
}

func (r *reconciler) create(ctx context.Context, cluster *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured) error {
	desired, err := render(cluster, manifest, "")
	if err != nil {
		return err
	}
	if err := r.karmada.Create(ctx, desired); err != nil {
		return fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	return nil
}

// render makes the Work, under the id given or else a new one.
func render(cluster *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured, id string) (*workv1alpha1.Work, error) {
	if id == "" {
		id = uuid.NewString()
	}
	return work.RenderOwned(work.OwnedInput{
		Template: manifest, Cluster: cluster, PermanentID: id,
		Owner: *metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind("Cluster")),
	})
}

// ours tells whether the Work is this controller's to change: not in deletion, not
// kept by a binding, and not left of an earlier Cluster of the same name.
func ours(stored *workv1alpha1.Work, owner types.UID) bool {
	if stored.DeletionTimestamp != nil || work.Bound(stored) {
		return false
	}
	controller := metav1.GetControllerOf(stored)
	return controller == nil || controller.UID == owner
}

// read gets an object from the cache; it must not be changed.
func (r *reconciler) read(ctx context.Context, key types.NamespacedName, into client.Object) error {
	if err := r.karmada.Get(ctx, key, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return nil
}

// conclude tells of a failure and says when the Cluster is looked at next.
func (r *reconciler) conclude(cluster *clusterv1alpha1.Cluster, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: lagDelay}, nil
	}
	if err != nil {
		r.events.Failed(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigFailed, err)
		return reconcile.Result{}, err
	}
	r.events.Recovered(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigFailed)
	return reconcile.Result{}, nil
}
