// Package unifiedauth keeps a ClusterRole and a ClusterRoleBinding in each member. These two objects
// permit the control plane's proxy to impersonate the users to whom one of the control plane's
// ClusterRoleBindings grants access to the cluster.
//
// The ClusterRole and the ClusterRoleBinding are delivered to members in separate Works, which the
// Cluster owns. This controller never deletes these Works, because they are deleted together with the
// Cluster. If a Cluster loses its reference to the impersonator Secret, its Works are kept. If a
// binding manages the Work of an object with the same name, this controller does not change that Work.
package unifiedauth

import (
	"context"
	"fmt"
	"maps"

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
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "unified-auth-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of Clusters that are processed in parallel.
	Workers int
	// Backoff is the exponential backoff for Clusters that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: loop.DefaultBackoff()}
}

type reconciler struct {
	karmada client.Client
	events  *loop.Events
}

// Add registers the controller with mgr.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(),
		events:  loop.EventsFor(mgr, Name, loop.EventModeChanges),
	}
	everyCluster := handler.EnqueueRequestsFromMapFunc(r.requestsForAllClusters)
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(onlyImpersonatorChanges())).
		Watches(newUnstructured(namespaces), handler.EnqueueRequestsFromMapFunc(requestForNamespace), builder.WithPredicates(onlyCreated())).
		Watches(&workv1alpha1.Work{}, r.newWorkHandler()).
		Watches(newUnstructured(clusterRoles), everyCluster, builder.WithPredicates(onlyAccessRoleChanges())).
		Watches(newUnstructured(clusterRoleBindings), everyCluster, builder.WithPredicates(r.onlyAccessBindingChanges())).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster, executionNamespace := &clusterv1alpha1.Cluster{}, newUnstructured(namespaces)
	// Ignore an object that does not exist, because the event of its creation causes another pass.
	if err := r.readFromCache(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil || cluster.Spec.ImpersonatorSecretRef == nil {
		return reconcile.Result{}, nil
	}
	if err := r.readFromCache(ctx, types.NamespacedName{Name: work.ExecutionNamespace(cluster.Name)}, executionNamespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if executionNamespace.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	return r.recordOutcome(cluster, r.syncWorks(ctx, cluster))
}

// syncWorks creates or updates the Works of the ClusterRole and the ClusterRoleBinding, and records an
// event if it wrote a Work.
func (r *reconciler) syncWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	subjects, err := r.allowedSubjects(ctx, cluster.Name)
	if err != nil {
		return err
	}
	controlPlane, err := r.controlPlaneID(ctx)
	if err != nil {
		return err
	}
	changed := false
	for _, object := range []runtime.Object{
		impersonation.NewRole(subjects, controlPlane), impersonation.NewBinding(cluster.Spec.ImpersonatorSecretRef.Namespace, controlPlane),
	} {
		manifest, err := manifestOf(object)
		if err != nil {
			return err
		}
		wrote, err := r.ensureWork(ctx, cluster, manifest)
		if err != nil {
			return err
		}
		changed = changed || wrote
	}
	if changed {
		r.events.RecordDecision(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigSucceed,
			"The control plane may act in the cluster for %d users, %d service accounts and %d groups",
			len(subjects.Users), len(subjects.ServiceAccounts), len(subjects.Groups))
	}
	return nil
}

// controlPlaneID returns the control plane's ID, which join also stores in the member's objects. It is
// empty if the API server has not created its namespaces yet.
func (r *reconciler) controlPlaneID(ctx context.Context) (string, error) {
	namespace := newUnstructured(namespaces)
	err := r.readFromCache(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, namespace)
	return string(namespace.GetUID()), client.IgnoreNotFound(err)
}

func manifestOf(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", object, err)
	}
	// Remove nulls, because a null in a merge patch removes the field, so a Work that contains nulls
	// would never equal the stored Work.
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	return &unstructured.Unstructured{Object: content}, nil
}

// ensureWork creates or updates one object's Work, and reports whether it wrote the Work. It does not
// change a Work that another owner manages or that is in deletion. When such a Work is deleted, its
// deletion event causes the next pass.
func (r *reconciler) ensureWork(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	manifest *unstructured.Unstructured) (written bool, err error) {
	stored := &workv1alpha1.Work{}
	key := types.NamespacedName{Namespace: work.ExecutionNamespace(cluster.Name), Name: work.Name(manifest.GetKind(), "", manifest.GetName())}
	err = r.readFromCache(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		err = r.createWork(ctx, cluster, manifest)
		return err == nil, err
	}
	if err != nil || !isManagedHere(stored, cluster.UID) {
		return false, err
	}
	desired, err := renderWork(cluster, manifest, stored.Labels[workv1alpha1.WorkPermanentIDLabel])
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

func (r *reconciler) createWork(ctx context.Context, cluster *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured) error {
	desired, err := renderWork(cluster, manifest, "")
	if err != nil {
		return err
	}
	if err := r.karmada.Create(ctx, desired); err != nil {
		return fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	return nil
}

// renderWork renders the Work with the given permanent ID. If id is empty, it generates a new ID.
func renderWork(cluster *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured, id string) (*workv1alpha1.Work, error) {
	if id == "" {
		id = uuid.NewString()
	}
	return work.RenderForOwner(work.RenderForOwnerInput{
		Template: manifest, Cluster: cluster, PermanentID: id,
		Owner: metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind("Cluster")),
	})
}

// isManagedHere reports whether this controller manages the Work: the Work is not in deletion, no
// binding manages it, and its owner is not an earlier Cluster of the same name.
func isManagedHere(stored *workv1alpha1.Work, owner types.UID) bool {
	if stored.DeletionTimestamp != nil || work.HasBinding(stored) {
		return false
	}
	controller := metav1.GetControllerOf(stored)
	return controller == nil || controller.UID == owner
}

// readFromCache reads an object from the cache. The caller must not change the object.
func (r *reconciler) readFromCache(ctx context.Context, key types.NamespacedName, into client.Object) error {
	if err := r.karmada.Get(ctx, key, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return nil
}

// recordOutcome records a failure as an event and returns the pass's result.
func (r *reconciler) recordOutcome(cluster *clusterv1alpha1.Cluster, err error) (reconcile.Result, error) {
	if loop.IsStale(err) {
		return loop.Result(err)
	}
	if err != nil {
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigFailed, err)
		return reconcile.Result{}, err
	}
	r.events.ClearFailure(cluster, clusterv1alpha1.EventReasonSyncImpersonationConfigFailed)
	return reconcile.Result{}, nil
}
