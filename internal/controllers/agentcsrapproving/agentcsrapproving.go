// Package agentcsrapproving answers "may this be the agent of that cluster, and has
// it the rights of one?".
//
// Requests for the certificates of agents are approved when nobody else can have
// the name, and before that the agent gets its rights. Invariants:
//
//   - what is decided is decided on what the API server says now, by one worker, and
//     recorded in the ClusterRole of the agent before a certificate is issued, so
//     that no two holders of tokens become the same agent;
//   - roles that others made are left as they are;
//   - rights end with the Cluster, or when the agent gives up its ClusterRole; they
//     come back only for the very Cluster that they were for, from the record in its
//     execution namespace, while it has an agent. An execution namespace goes only if
//     it was made for a registration, and neither Cluster nor agent nor Work is there;
//   - a request that was refused is deleted after a day if nobody approves it.
package agentcsrapproving

import (
	"context"
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/agent"
)

// Name is the name of the controller in logs and events.
const Name = "agent-csr-approving-controller"

const (
	// waitDelay is how soon to look again at what is about to go.
	waitDelay = time.Second
	// refusedLife is how long a request that was refused is kept for people. The
	// cleaner of Kubernetes deletes requests that nobody answers as late, and takes
	// one with any condition for answered.
	refusedLife = 24 * time.Hour
	// requestTimeout bounds what one pass may take; the one worker serves all.
	requestTimeout = 30 * time.Second
)

// Options are what operators may tune.
type Options struct {
	// Backoff is that of what failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Backoff: queues.DefaultBackoff()}
}

// item is what is worked on: a request for a certificate, or the rights of the
// agent of a cluster.
type item struct {
	request, cluster string
}

type reconciler struct {
	// karmada writes, live reads what is stored now: what is decided here must not
	// rest on what was true a moment ago.
	karmada client.Client
	live    client.Reader
	events  *observe.Events
	now     func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	log := mgr.GetLogger().WithName(Name)
	building := builder.TypedControllerManagedBy[item](mgr).Named(Name).
		Watches(&certificatesv1.CertificateSigningRequest{}, mapped(requestItem)).
		Watches(&clusterv1alpha1.Cluster{}, mapped(clusterItem), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		watched := &unstructured.Unstructured{}
		watched.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		building = building.Watches(watched, mapped(managedItem))
	}
	err := building.
		WithLogConstructor(func(about *item) logr.Logger {
			if about == nil {
				return log
			}
			return log.WithValues("request", about.request, "member", about.cluster)
		}).
		WithOptions(queues.Options[item](mgr, 1, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

func mapped(of func(client.Object) (item, bool)) handler.TypedEventHandler[client.Object, item] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []item {
		if about, ok := of(object); ok {
			return []item{about}
		}
		return nil
	})
}

func requestItem(object client.Object) (item, bool) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	return item{request: object.GetName()}, ok && (open(csr) || refused(csr))
}

// clusterItem looks at clusters with an agent, at those that leave, and at those that
// have the name of an agent.
func clusterItem(object client.Object) (item, bool) {
	return item{cluster: object.GetName()}, agent.ValidName(object.GetName())
}

func managedItem(object client.Object) (item, bool) {
	cluster := object.GetLabels()[agent.ManagedLabel]
	return item{cluster: cluster}, agent.ValidName(cluster)
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, about item) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	again, err := r.work(ctx, about)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		again, err = waitDelay, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// work tells when to look again, 0 for never.
func (r *reconciler) work(ctx context.Context, about item) (again time.Duration, err error) {
	if about.request != "" {
		return r.handle(ctx, about.request)
	}
	return soon(r.keepRights(ctx, about.cluster))
}

// soon is when to look again at what may be about to go.
func soon(wait bool, err error) (time.Duration, error) {
	if err != nil || !wait {
		return 0, err
	}
	return waitDelay, nil
}

// keepRights keeps the rights of the agent of a Cluster that exists, and cleans up
// after one whose registration was given up.
func (r *reconciler) keepRights(ctx context.Context, name string) (wait bool, err error) {
	cluster := &clusterv1alpha1.Cluster{}
	exists, err := r.read(ctx, client.ObjectKey{Name: name}, cluster)
	if err != nil {
		return false, err
	}
	if !exists {
		return false, r.cleanUp(ctx, name)
	}
	switch {
	case cluster.DeletionTimestamp != nil:
		return false, nil
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return false, r.withdraw(ctx, cluster)
	}
	record, err := r.recorded(ctx, cluster)
	if err != nil || record == nil {
		return false, err
	}
	return r.grant(ctx, *record)
}

// withdraw takes the rights away that an agent got for the name before somebody
// joined a cluster without one under it: it could read the credentials of that one.
// An agent whose Cluster this was before keeps them, until somebody deletes them.
func (r *reconciler) withdraw(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	role := &rbacv1.ClusterRole{}
	exists, err := r.read(ctx, client.ObjectKey{Name: agent.RoleName(cluster.Name)}, role)
	if err != nil || exists && (!managed(role, cluster.Name) || len(role.OwnerReferences) > 0) {
		return err
	}
	if err := r.dropRecord(ctx, cluster.Name); err != nil || !exists {
		return err
	}
	if err := r.karmada.Delete(ctx, role, client.Preconditions{UID: &role.UID, ResourceVersion: &role.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking its rights from the agent of the name of cluster %q: %w", cluster.Name, err)
	}
	r.events.Failed(cluster, "AgentRightsWithdrawn", fmt.Errorf("the agent that had registered under the name of this cluster before has lost its rights; request %s by %s",
		role.Annotations[agent.RequestAnnotation], role.Annotations[agent.RequesterAnnotation]))
	return nil
}

// read reads an object from the API server. It is false if there is none.
func (r *reconciler) read(ctx context.Context, key client.ObjectKey, into client.Object) (exists bool, err error) {
	err = r.live.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %q: %w", into, key, err)
	}
	return true, nil
}

// cleanUp deletes the execution namespace that was made for a registration, when
// nothing came of it.
func (r *reconciler) cleanUp(ctx context.Context, name string) error {
	space := &corev1.Namespace{}
	exists, err := r.read(ctx, client.ObjectKey{Name: agent.ExecutionNamespace(name)}, space)
	if err != nil || !exists || space.DeletionTimestamp != nil || space.Annotations[agent.RequestAnnotation] == "" {
		return err
	}
	if exists, err = r.read(ctx, client.ObjectKey{Name: agent.RoleName(name)}, &rbacv1.ClusterRole{}); err != nil || exists {
		return err
	}
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workList)
	if err := r.live.List(ctx, works, client.InNamespace(space.Name), client.Limit(1)); err != nil {
		return fmt.Errorf("listing the Works of cluster %q: %w", name, err)
	}
	if len(works.Items) > 0 {
		return nil
	}
	if err := r.karmada.Delete(ctx, space, client.Preconditions{UID: &space.UID, ResourceVersion: &space.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %q: %w", space.Name, err)
	}
	return nil
}
