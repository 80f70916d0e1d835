// Package workstatus answers "what has become of a Work's objects in the
// member?": it reflects their status and health into the Work.
//
// It reads members from caches only, and waits a moment before it writes, so that
// a burst of changes in a member becomes one write. An entry goes only when the
// object is known to be gone, never because a cache is not filled yet.
package workstatus

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "work-status-controller"

// Options are what operators may tune.
type Options struct {
	// Workers is how many Works of one member are worked on at once.
	Workers int
	// Window is how long changes in a member are gathered before they are written.
	Window time.Duration
	// BaseDelay and MaxDelay bound the back-off of a Work that failed.
	BaseDelay, MaxDelay time.Duration
	// Mode is the sync mode whose clusters this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
}

// DefaultOptions serve the push mode clusters.
func DefaultOptions() Options {
	return Options{
		Workers: 5, Window: 100 * time.Millisecond,
		BaseDelay: 5 * time.Millisecond, MaxDelay: 30 * time.Second, Mode: clusterv1alpha1.Push,
	}
}

// Members opens the way into member clusters.
type Members interface {
	For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	Subscribe(notify func(member.Event))
}

type controller struct {
	options Options
	karmada client.Client
	cache   cache.Cache
	members Members
	rules   interpreter.Source
	events  *observe.Events
	pools   *fanout.Pools
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, rules interpreter.Source, o Options) error {
	c := &controller{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, rules: rules,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	c.pools = fanout.New(fanout.Options{Name: Name, Workers: o.Workers, BaseDelay: o.BaseDelay, MaxDelay: o.MaxDelay}, c.reconcile)
	members.Subscribe(c.onMemberEvent)
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if gone, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.pools.Drop(gone.Name)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return c.pools.Start(ctx)
}

// onMemberEvent queues the Work of a member object that changed.
func (c *controller) onMemberEvent(event member.Event) {
	annotations := event.Object().GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation], Name: annotations[workv1alpha1.WorkNameAnnotation]}
	if cluster, ok := work.ClusterOf(key.Namespace); !ok || cluster != event.Member || key.Name == "" {
		return
	}
	priority := fanout.Live
	if event.Initial {
		priority = fanout.Initial
	}
	c.pools.Add(event.Member, key, priority, c.options.Window)
}

func (c *controller) reconcile(ctx context.Context, clusterName string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &workv1alpha1.Work{}
	if err := c.karmada.Get(ctx, key, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, types.NamespacedName{Name: clusterName}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stored.DeletionTimestamp != nil || cluster.Spec.SyncMode != c.options.Mode {
		return reconcile.Result{}, nil
	}
	target, err := c.members.For(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.reflect(ctx, target, stored)
}

// reflect writes the status and health of every object of the Work, at once.
func (c *controller) reflect(ctx context.Context, target *member.Member, stored *workv1alpha1.Work) error {
	reported := stored.DeepCopy()
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			// Execution reports a manifest that cannot be read.
			continue
		}
		if err := c.reflectOne(ctx, target, reported, manifest); err != nil {
			c.events.Failed(stored, workv1alpha1.EventReasonReflectStatusFailed, err)
			return err
		}
	}
	c.events.Recovered(stored, workv1alpha1.EventReasonReflectStatusFailed)
	if work.SameManifestStatuses(stored.Status.ManifestStatuses, reported.Status.ManifestStatuses) {
		return nil
	}
	_, err := patch.OwnStatus(ctx, c.karmada, stored, reported)
	return client.IgnoreNotFound(err)
}

func (c *controller) reflectOne(ctx context.Context, target *member.Member, reported *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	manifests, statuses := reported.Spec.Workload.Manifests, reported.Status.ManifestStatuses
	identifier, err := work.Identify(manifests, manifest)
	if err != nil {
		return err
	}
	observed, cached, err := target.Get(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	switch {
	case apierrors.IsNotFound(err):
		reported.Status.ManifestStatuses = work.DropManifestStatus(statuses, identifier, manifests)
		return nil
	case err != nil:
		return fmt.Errorf("reading %s %s in cluster %s: %w", manifest.GetKind(), client.ObjectKeyFromObject(manifest), target.Name, err)
	case !cached && !sameWork(observed, manifest):
		return nil
	}
	status, err := c.status(ctx, observed)
	if err != nil {
		return fmt.Errorf("cluster %s: reflecting status of %s %s: %w", target.Name, manifest.GetKind(), client.ObjectKeyFromObject(manifest), err)
	}
	entry := workv1alpha1.ManifestStatus{Identifier: identifier, Status: status, Health: c.health(ctx, reported, observed)}
	reported.Status.ManifestStatuses = work.MergeManifestStatus(statuses, entry, manifests)
	return nil
}

// sameWork tells whether a member object says that it is of the manifest's Work.
func sameWork(observed, manifest *unstructured.Unstructured) bool {
	before, now := observed.GetAnnotations(), manifest.GetAnnotations()
	return before[workv1alpha1.WorkNamespaceAnnotation] == now[workv1alpha1.WorkNamespaceAnnotation] &&
		before[workv1alpha1.WorkNameAnnotation] == now[workv1alpha1.WorkNameAnnotation]
}
