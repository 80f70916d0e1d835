// Package namespace answers "does every member have the Namespaces of the control
// plane?": it keeps a Work for each Namespace in each cluster, without any policy.
//
// Each pair of Namespace and cluster is an item of its own, so that one cluster
// that takes no writes holds up nothing else. Works are never deleted here: their
// owner is the Namespace, and they go with it. A Namespace that is excluded later
// keeps the Works that it has, unchanged. Where a binding keeps the Work of a
// Namespace, this controller stays out, except that it says to be an owner too: when
// the binding goes, the Work is left to it, and with it what is in the member.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in logs and events.
const Name = "namespace-sync-controller"

// lagDelay is how soon to look again at what a watch has not brought yet.
const lagDelay = 20 * time.Millisecond

var gvk = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// Options are what operators may tune.
type Options struct {
	// Workers is how many pairs of Namespace and cluster are worked on at once.
	Workers int
	// Backoff is that of a pair that failed.
	Backoff queues.Backoff
	// SkippedNamespaces are not propagated.
	SkippedNamespaces reach.SkippedNamespaces
	// Allowed is what ClusterOverridePolicies may change of a Namespace.
	Allowed override.Allowed
}

// DefaultOptions skip the control plane's own Namespaces only.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: queues.DefaultBackoff()}
}

// request asks for one Namespace in one cluster.
type request struct {
	namespace, cluster string
}

type reconciler struct {
	options Options
	karmada client.Client
	events  *observe.Events
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		options: o, karmada: mgr.GetClient(),
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	log := mgr.GetLogger().WithName(Name)
	err := builder.TypedControllerManagedBy[request](mgr).Named(Name).
		Watches(empty(), r.onNamespace()).
		Watches(&clusterv1alpha1.Cluster{}, r.onCluster()).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, r.onOverride()).
		Watches(&workv1alpha1.Work{}, r.onWork()).
		WithLogConstructor(func(about *request) logr.Logger {
			if about == nil {
				return log
			}
			return log.WithValues("namespace", about.namespace, "member", about.cluster)
		}).
		WithOptions(queues.Options[request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, about request) (reconcile.Result, error) {
	namespace, cluster, space := empty(), &clusterv1alpha1.Cluster{}, empty()
	for _, each := range []struct {
		name string
		into client.Object
	}{
		{about.namespace, namespace}, {about.cluster, cluster}, {work.ExecutionNamespace(about.cluster), space},
	} {
		if err := r.read(ctx, each.name, each.into); err != nil {
			// What is missing leads back here when it appears.
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !propagated(namespace, r.options.SkippedNamespaces) || cluster.DeletionTimestamp != nil || space.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	return r.conclude(namespace, about, r.ensure(ctx, namespace, cluster))
}

// read gets a cluster-scoped object from the cache; it must not be changed.
func (r *reconciler) read(ctx context.Context, name string, into client.Object) error {
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	return nil
}

// ensure brings the Work of a Namespace in a cluster up to date. A Work that is
// not ours to change, or in deletion, is left: its end leads back here.
func (r *reconciler) ensure(ctx context.Context, namespace *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster) error {
	key := types.NamespacedName{Namespace: work.ExecutionNamespace(cluster.Name), Name: workName(namespace.GetName())}
	stored, err := r.stored(ctx, key)
	if err != nil {
		return err
	}
	if stored != nil && work.Bound(stored) {
		return r.own(ctx, namespace, stored)
	}
	if stored != nil && !ours(stored, namespace.GetUID()) {
		return nil
	}
	desired, err := r.render(ctx, namespace, cluster, stored)
	if err != nil {
		return err
	}
	if desired.Name != key.Name {
		// An override gave the Namespace another name.
		key.Name = desired.Name
		if stored, err = r.stored(ctx, key); err != nil || stored != nil && !ours(stored, namespace.GetUID()) {
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

// own makes the Namespace the owner of a Work that a binding keeps.
func (r *reconciler) own(ctx context.Context, namespace *unstructured.Unstructured, stored *workv1alpha1.Work) error {
	if stored.DeletionTimestamp != nil || metav1.GetControllerOf(stored) != nil {
		return nil
	}
	owned := stored.DeepCopy()
	owned.OwnerReferences = append(owned.OwnerReferences, *metav1.NewControllerRef(namespace, gvk))
	_, err := patch.Object(ctx, r.karmada, stored, owned)
	return err
}

// stored is the Work of that name, nil when there is none. It must not be changed.
func (r *reconciler) stored(ctx context.Context, key types.NamespacedName) (*workv1alpha1.Work, error) {
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

// ours tells whether the Work is this controller's to change: not in deletion, not
// kept by a binding, and not left of an earlier Namespace of the same name.
func ours(stored *workv1alpha1.Work, owner types.UID) bool {
	if stored.DeletionTimestamp != nil || work.Bound(stored) {
		return false
	}
	controller := metav1.GetControllerOf(stored)
	return controller == nil || controller.UID == owner
}

// render makes the Work, under the id that it has or else a new one.
func (r *reconciler) render(
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
	return work.RenderOwned(work.OwnedInput{
		Template: namespace, Cluster: cluster, Owner: *metav1.NewControllerRef(namespace, gvk),
		ClusterOverrides: overrides, Allowed: r.options.Allowed, PermanentID: id,
	})
}

func empty() *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(gvk)
	return namespace
}

// conclude tells of a failure and says when the pair is looked at next.
func (r *reconciler) conclude(namespace *unstructured.Unstructured, about request, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: lagDelay}, nil
	}
	reason := policyv1alpha1.EventReasonApplyOverridePolicyFailed
	var mistake *override.RuleError
	if errors.As(err, &mistake) {
		// A change of the policy, by its author, leads back here.
		r.events.FailedIn(about.cluster, namespace, reason, fmt.Errorf("cluster %q: %w", about.cluster, err))
		return reconcile.Result{}, nil
	}
	if err == nil {
		r.events.RecoveredIn(about.cluster, namespace, reason)
	}
	return reconcile.Result{}, err
}
