// Package agentcsrapproving approves the CertificateSigningRequests of agents, and grants the agents
// their permissions.
//
// It approves an agent's CertificateSigningRequest if no other agent can have the same name, and grants
// the agent its permissions before the approval. Invariants:
//
//   - One worker makes all decisions, with data from the API server and not from caches. It records
//     each decision in the agent's ClusterRole before a certificate is issued, so that two token
//     holders cannot become the same agent.
//   - If another client created a role, the controller adds at most annotations to it, and creates
//     roles of its own with which the agent can delete objects.
//   - An agent's permissions end when its Cluster is deleted, or when the agent deletes its
//     ClusterRole. If the permissions are lost for another reason, the controller restores them from
//     the record in the execution namespace, but only for the Cluster with the same UID and only while
//     that Cluster has an agent.
//   - The controller deletes an execution namespace only if it was created for a registration and the
//     cluster has no Cluster object, no agent and no Work.
//   - The controller deletes a request that it did not approve after a day, unless a user approves it.
package agentcsrapproving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the controller in logs and events.
const Name = "agent-csr-approving-controller"

const (
	// deletionWaitDelay is the delay before the next pass while an object is being deleted.
	deletionWaitDelay = time.Second
	// manualDecisionPeriod is how long the controller keeps a request that it did not approve, so that
	// a user can approve it. The Kubernetes cleaner deletes pending requests after the same time, but
	// it does not delete these requests, because it treats a request with any condition as decided.
	manualDecisionPeriod = 24 * time.Hour
	// passTimeout limits the duration of one pass, because all items share one worker.
	passTimeout = 30 * time.Second
)

// Options configure the controller.
type Options struct {
	// Backoff is the exponential backoff for items that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Backoff: loop.DefaultBackoff()}
}

// item identifies what a pass processes: a CertificateSigningRequest, or the permissions of a cluster's
// agent.
type item struct {
	request, cluster string
}

type reconciler struct {
	// karmada writes objects. live reads from the API server, because decisions must not depend on
	// caches, which may be stale.
	karmada client.Client
	live    client.Reader
	events  *loop.Events
	now     func() time.Time
}

// Add registers the controller with mgr.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now,
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges),
	}
	log := mgr.GetLogger().WithName(Name)
	building := builder.TypedControllerManagedBy[item](mgr).Named(Name).
		Watches(&certificatesv1.CertificateSigningRequest{}, enqueueMapped(requestItem)).
		Watches(&clusterv1alpha1.Cluster{}, enqueueMapped(clusterItem), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		watched := &unstructured.Unstructured{}
		watched.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		building = building.Watches(watched, enqueueMapped(managedItem))
	}
	err := building.
		WithLogConstructor(func(key *item) logr.Logger {
			if key == nil {
				return log
			}
			return log.WithValues("request", key.request, "member", key.cluster)
		}).
		WithOptions(loop.ControllerOptions[item](mgr, 1, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

func enqueueMapped(toItem func(client.Object) (item, bool)) handler.TypedEventHandler[client.Object, item] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []item {
		if key, ok := toItem(object); ok {
			return []item{key}
		}
		return nil
	})
}

func requestItem(object client.Object) (item, bool) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	return item{request: object.GetName()}, ok && (needsPass(csr) || awaitsManualDecision(csr))
}

// clusterItem returns the item for the cluster that has the object's name. It returns false if no agent
// can have this name.
func clusterItem(object client.Object) (item, bool) {
	return item{cluster: object.GetName()}, agent.IsValidName(object.GetName())
}

func managedItem(object client.Object) (item, bool) {
	cluster := object.GetLabels()[clusterv1alpha1.AgentLabel]
	return item{cluster: cluster}, agent.IsValidName(cluster)
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, key item) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	requeueAfter, err := r.processItem(ctx, key)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		requeueAfter, err = deletionWaitDelay, nil
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, err
}

// processItem processes an item. It returns the delay before the next pass, or 0 if no further pass is
// needed.
func (r *reconciler) processItem(ctx context.Context, key item) (requeueAfter time.Duration, err error) {
	if key.request != "" {
		return r.processRequest(ctx, key.request)
	}
	return requeueSoon(r.ensurePermissions(ctx, key.cluster))
}

// requeueSoon returns the delay before the next pass if wait is true, which means that an object is
// being deleted. Otherwise it returns 0.
func requeueSoon(wait bool, err error) (time.Duration, error) {
	if err != nil || !wait {
		return 0, err
	}
	return deletionWaitDelay, nil
}

// ensurePermissions restores the permissions of a Cluster's agent. If no Cluster with the given name
// exists, it cleans up after a registration that was not completed.
func (r *reconciler) ensurePermissions(ctx context.Context, name string) (wait bool, err error) {
	cluster := &clusterv1alpha1.Cluster{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: name}, cluster)
	if err != nil {
		return false, err
	}
	if !exists {
		return false, r.deleteUnusedNamespace(ctx, name)
	}
	switch {
	case cluster.DeletionTimestamp != nil:
		return false, nil
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return false, r.removePermissions(ctx, cluster)
	}
	record, err := r.readRecord(ctx, cluster)
	if err != nil {
		return false, err
	}
	if record == nil {
		return r.grantRemovalPermissions(ctx, cluster)
	}
	return r.grantPermissions(ctx, *record)
}

// removePermissions is called for a Cluster without an agent. If an agent registered the name before
// this Cluster was joined under the same name, removePermissions removes that agent's permissions,
// because that agent could read the Cluster's credentials. An agent that belonged to this Cluster
// earlier keeps its permissions until a user deletes them.
func (r *reconciler) removePermissions(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	role := &rbacv1.ClusterRole{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.RoleName(cluster.Name)}, role)
	if err != nil || exists && len(role.OwnerReferences) > 0 {
		return err
	}
	if err := errors.Join(r.annotateNamespace(ctx, cluster.Name, nil), r.deleteBindings(ctx, cluster)); err != nil || !exists ||
		!isManaged(role, cluster.Name) {
		return err
	}
	if err := r.karmada.Delete(ctx, role, client.Preconditions{UID: &role.UID,
		ResourceVersion: &role.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the permissions of the agent named after cluster %q: %w", cluster.Name, err)
	}
	r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonAgentPermissionsRemoved,
		fmt.Errorf("removed the permissions of an agent that registered earlier under the name of this cluster, with request %s of user %s",
			role.Annotations[clusterv1alpha1.AgentRequestAnnotation], role.Annotations[clusterv1alpha1.AgentRequesterAnnotation]))
	return nil
}

// deleteBindings deletes the role bindings without an owner that grant permissions to an agent with the
// Cluster's name, regardless of who created them. GeneratorUser may have created them before the
// Cluster.
func (r *reconciler) deleteBindings(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	namespace := clusterv1alpha1.NamespaceKarmadaCluster
	if cluster.Spec.SecretRef != nil {
		namespace = cluster.Spec.SecretRef.Namespace
	}
	for _, binding := range agent.Bindings(cluster.Name, namespace) {
		stored := newEmptyLike(binding)
		exists, err := r.readLive(ctx, client.ObjectKeyFromObject(binding), stored)
		if err != nil {
			return err
		}
		if !exists || len(stored.GetOwnerReferences()) > 0 || !agent.Binds(stored, cluster.Name) {
			continue
		}
		if err := r.karmada.Delete(ctx, stored, client.Preconditions{UID: new(stored.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the permissions of an agent with the name of cluster %q: %w", cluster.Name, err)
		}
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonAgentPermissionsRemoved,
			fmt.Errorf("deleted role binding %s, which gave permissions to an agent with the name of this cluster",
				client.ObjectKeyFromObject(stored)))
	}
	return nil
}

// readLive reads an object from the API server and reports whether it exists.
func (r *reconciler) readLive(ctx context.Context, key client.ObjectKey, into client.Object) (exists bool, err error) {
	err = r.live.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %q: %w", into, key, err)
	}
	return true, nil
}

// deleteUnusedNamespace deletes the execution namespace of a registration that was not completed.
func (r *reconciler) deleteUnusedNamespace(ctx context.Context, name string) error {
	executionNamespace := &corev1.Namespace{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: work.ExecutionNamespace(name)}, executionNamespace)
	if err != nil || !exists || executionNamespace.DeletionTimestamp != nil ||
		executionNamespace.Annotations[clusterv1alpha1.AgentRequestAnnotation] == "" {
		return err
	}
	if exists, err = r.readLive(ctx, client.ObjectKey{Name: agent.RoleName(name)}, &rbacv1.ClusterRole{}); err != nil || exists {
		return err
	}
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workListKind)
	if err := r.live.List(ctx, works, client.InNamespace(executionNamespace.Name), client.Limit(1)); err != nil {
		return fmt.Errorf("listing the Works of cluster %q: %w", name, err)
	}
	if len(works.Items) > 0 {
		return nil
	}
	if err := r.karmada.Delete(ctx, executionNamespace,
		client.Preconditions{UID: &executionNamespace.UID,
			ResourceVersion: &executionNamespace.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %q: %w", executionNamespace.Name, err)
	}
	return nil
}
