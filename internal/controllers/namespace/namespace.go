// Package namespace creates and updates a Work for each Namespace in each cluster. This requires no
// policy.
//
// Each pair of Namespace and cluster is a separate item in the queue, so that failed writes for one
// cluster do not delay other clusters. This controller never deletes a Work, because the Namespace owns
// the Work, and the garbage collector deletes the Work together with the Namespace. If a Namespace is
// excluded from propagation later, its Works are kept unchanged. If a binding manages a Namespace's
// Work, this controller only adds the Namespace as an owner, so that the Work and the objects in the
// member are kept when the binding is deleted.
package namespace

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "namespace-sync-controller"

var gvk = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// Options configure the controller.
type Options struct {
	// Workers is the number of pairs of Namespace and cluster that are processed in parallel.
	Workers int
	// Backoff is the exponential backoff for pairs that failed.
	Backoff loop.Backoff
	// SkippedNamespaces are the namespaces that are not propagated.
	SkippedNamespaces tenancy.SkippedNamespaces
	// AllowedOverrides specifies the changes that ClusterOverridePolicies may make outside a
	// Namespace's content.
	AllowedOverrides override.Options
}

// DefaultOptions returns options that skip only the control plane's own Namespaces.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: loop.DefaultBackoff()}
}

// request identifies one Namespace in one cluster.
type request struct {
	namespace, cluster string
}

type reconciler struct {
	options Options
	karmada client.Client
	events  *loop.Events
}

// Add registers the controller with mgr.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		options: o, karmada: mgr.GetClient(),
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges),
	}
	log := mgr.GetLogger().WithName(Name)
	err := builder.TypedControllerManagedBy[request](mgr).Named(Name).
		Watches(newNamespace(), r.newNamespaceHandlers()).
		Watches(&clusterv1alpha1.Cluster{}, r.newClusterHandlers()).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, r.newOverrideHandlers()).
		Watches(&workv1alpha1.Work{}, r.newWorkHandlers()).
		WithLogConstructor(func(pair *request) logr.Logger {
			if pair == nil {
				return log
			}
			return log.WithValues("namespace", pair.namespace, "member", pair.cluster)
		}).
		WithOptions(loop.ControllerOptions[request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, pair request) (reconcile.Result, error) {
	namespace, cluster, executionNamespace := newNamespace(), &clusterv1alpha1.Cluster{}, newNamespace()
	for _, each := range []struct {
		name string
		into client.Object
	}{
		{pair.namespace, namespace}, {pair.cluster, cluster}, {work.ExecutionNamespace(pair.cluster), executionNamespace},
	} {
		if err := r.readFromCache(ctx, each.name, each.into); err != nil {
			// Ignore an object that does not exist, because the event of its creation causes another
			// pass.
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !isPropagated(namespace, r.options.SkippedNamespaces) || cluster.DeletionTimestamp != nil ||
		executionNamespace.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	return r.recordOutcome(namespace, pair, r.ensureWork(ctx, namespace, cluster))
}

// readFromCache reads a cluster-scoped object from the cache. The caller must not change the object.
func (r *reconciler) readFromCache(ctx context.Context, name string, into client.Object) error {
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	return nil
}

// ensureWork creates or updates the Namespace's Work for the cluster. It does not change a Work that
// another owner manages or that is in deletion. When such a Work is deleted, its deletion event causes
// the next pass.
func (r *reconciler) ensureWork(ctx context.Context, namespace *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster) error {
	key := types.NamespacedName{Namespace: work.ExecutionNamespace(cluster.Name), Name: workName(namespace.GetName())}
	stored, err := r.storedWork(ctx, key)
	if err != nil {
		return err
	}
	if stored != nil && work.HasBinding(stored) {
		return r.addOwner(ctx, namespace, stored)
	}
	if stored != nil && !isManagedHere(stored, namespace.GetUID()) {
		return nil
	}
	desired, err := r.renderWork(ctx, namespace, cluster, stored)
	if err != nil {
		return err
	}
	if desired.Name != key.Name {
		// An override renamed the Namespace, so the Work has another name too.
		key.Name = desired.Name
		if stored, err = r.storedWork(ctx, key); err != nil || stored != nil && !isManagedHere(stored, namespace.GetUID()) {
			return err
		}
	}
	if stored == nil {
		if err := r.karmada.Create(ctx, desired); err != nil {
			return fmt.Errorf("creating Work %s: %w", key, err)
		}
		return nil
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return fmt.Errorf("merging Work %s: %w", key, err)
	}
	if !changed {
		return nil
	}
	_, err = patch.Object(ctx, r.karmada, stored, merged)
	return err
}

// addOwner adds the Namespace as the owner of a Work that a binding manages.
func (r *reconciler) addOwner(ctx context.Context, namespace *unstructured.Unstructured, stored *workv1alpha1.Work) error {
	if stored.DeletionTimestamp != nil || metav1.GetControllerOf(stored) != nil {
		return nil
	}
	owned := stored.DeepCopy()
	owned.OwnerReferences = append(owned.OwnerReferences, *metav1.NewControllerRef(namespace, gvk))
	_, err := patch.Object(ctx, r.karmada, stored, owned)
	return err
}

// storedWork returns the Work from the cache, or nil if the cache does not contain it. The caller must
// not change the Work.
func (r *reconciler) storedWork(ctx context.Context, key types.NamespacedName) (*workv1alpha1.Work, error) {
	stored := &workv1alpha1.Work{}
	err := r.karmada.Get(ctx, key, stored, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Work %s: %w", key, err)
	}
	return stored, nil
}

// isManagedHere reports whether this controller manages the Work: the Work is not in deletion, no
// binding manages it, and its owner is not an earlier Namespace of the same name.
func isManagedHere(stored *workv1alpha1.Work, owner types.UID) bool {
	if stored.DeletionTimestamp != nil || work.HasBinding(stored) {
		return false
	}
	controller := metav1.GetControllerOf(stored)
	return controller == nil || controller.UID == owner
}

// renderWork renders the Namespace's Work. It keeps the stored Work's permanent ID, or generates a new
// one if there is no stored Work.
func (r *reconciler) renderWork(
	ctx context.Context, namespace *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work,
) (*workv1alpha1.Work, error) {
	list := &policyv1alpha1.ClusterOverridePolicyList{}
	if err := r.karmada.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
	}
	overrides := make([]override.Object, 0, len(list.Items))
	for i := range list.Items {
		overrides = append(overrides, &list.Items[i])
	}
	id := uuid.NewString()
	if stored != nil && stored.Labels[workv1alpha1.WorkPermanentIDLabel] != "" {
		id = stored.Labels[workv1alpha1.WorkPermanentIDLabel]
	}
	return work.RenderForOwner(work.RenderForOwnerInput{
		Template: namespace, Cluster: cluster, Owner: metav1.NewControllerRef(namespace, gvk),
		ClusterOverrides: overrides, Allowed: r.options.AllowedOverrides, PermanentID: id,
	})
}

func newNamespace() *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(gvk)
	return namespace
}

// recordOutcome records a failure as an event and returns the pass's result.
func (r *reconciler) recordOutcome(namespace *unstructured.Unstructured, pair request, err error) (reconcile.Result, error) {
	if loop.IsStale(err) {
		return loop.Result(err)
	}
	reason := policyv1alpha1.EventReasonApplyOverridePolicyFailed
	var mistake *override.RuleError
	if errors.As(err, &mistake) {
		// Do not retry, because the policy's author must change the policy, which causes another pass.
		r.events.RecordClusterFailure(pair.cluster, namespace, reason, fmt.Errorf("cluster %q: %w", pair.cluster, err))
		return reconcile.Result{}, nil
	}
	if err == nil {
		r.events.ClearClusterFailure(pair.cluster, namespace, reason)
	}
	return reconcile.Result{}, err
}
