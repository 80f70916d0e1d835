// Package workstatus answers "what has become of a Work's objects in the
// member?": it reflects their status and health into the Work.
//
// It reads members from caches only. An entry goes only when the object is known to
// be gone, never because a cache is not filled yet.
package workstatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "work-status-controller"

// Options are what operators may tune.
type Options struct {
	// Workers is how many Works of one member are worked on at once.
	Workers int
	// Window is how long changes in a member are gathered before they are looked
	// at.
	Window time.Duration
	// Backoff is that of a Work that failed.
	Backoff queues.Backoff
	// Mode is the sync mode whose clusters this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// Events selects the successes that are written as events.
	Events observe.Mode
	// StatusBytes is how much of the status of an object is reflected, in bytes; 0 means
	// work.MaxStatusBytes.
	StatusBytes int
}

// DefaultOptions serve the push mode clusters.
func DefaultOptions() Options {
	return Options{
		Workers: 5, Window: 20 * time.Millisecond,
		Backoff: queues.Backoff{Base: 5 * time.Millisecond, Max: 30 * time.Second}, Mode: clusterv1alpha1.Push,
	}
}

// Members opens the way into member clusters.
type Members interface {
	For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	Subscribe(notify func(member.Event))
	OnRecovery(notify func(name string))
}

type controller struct {
	options Options
	karmada client.Client
	cache   cache.Cache
	members Members
	rules   interpreter.Source
	events  *observe.Events
	reports *report.Works
	scope   fanout.Scope
	pools   *fanout.Pools
	pods    *podChecks
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, rules interpreter.Source, reports *report.Works, o Options) error {
	c := &controller{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, rules: rules, reports: reports,
		scope: fanout.Scope{Seen: mgr.GetClient(), Mode: o.Mode}, pods: newPodChecks(time.Now),
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
	}
	c.pools = fanout.New(fanout.Options{
		Name: Name, Workers: o.Workers, Backoff: o.Backoff, Serves: c.scope.Serves,
	}, c.reconcile)
	members.Subscribe(c.onMemberEvent)
	members.OnRecovery(c.pools.Wake)
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(c.onCluster()); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return c.pools.Start(ctx)
}

// onCluster lays down clusters that go, or that another process serves. One that
// is taken up again tells of its objects by itself.
func (c *controller) onCluster() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			older, ok := before.(*clusterv1alpha1.Cluster)
			newer, ok2 := after.(*clusterv1alpha1.Cluster)
			if ok && ok2 && c.scope.Left(older, newer) {
				c.pools.Drop(newer.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if gone, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.pools.Drop(gone.Name)
			}
		},
	}
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
	again, err := c.reflect(ctx, target, stored)
	return reconcile.Result{RequeueAfter: again}, err
}

// holder is a member cluster, as far as it is looked at here.
type holder interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	Client() client.Client
}

// reflect hands in the status and health of every object of the Work, at once. One
// that cannot be told keeps no other from being. It returns after what time to look
// again; 0 for at the next change.
func (c *controller) reflect(ctx context.Context, target holder, stored *workv1alpha1.Work) (again time.Duration, err error) {
	var seen []reflection
	var failures []error
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			// Execution reports a manifest that cannot be read.
			continue
		}
		one, err := c.reflectOne(ctx, target, stored, manifest)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		seen = append(seen, one)
		if one.again > 0 && (again == 0 || one.again < again) {
			again = one.again
		}
	}
	if len(seen) > 0 {
		c.handIn(stored, seen)
	}
	if err := errors.Join(failures...); err != nil {
		c.events.Failed(stored, workv1alpha1.EventReasonReflectStatusFailed, err)
		return 0, err
	}
	c.events.Recovered(stored, workv1alpha1.EventReasonReflectStatusFailed)
	if slices.ContainsFunc(seen, func(one reflection) bool { return one.entry != nil }) {
		c.events.Succeeded(stored, workv1alpha1.EventReasonReflectStatusSucceed, "Reflected the status of the objects in the cluster")
	}
	return again, nil
}

// handIn hands in what was seen; of the rest stays what was told before.
func (c *controller) handIn(stored *workv1alpha1.Work, seen []reflection) {
	c.reports.Report(stored, report.ManifestStatuses, paceOf(seen), func(status *workv1alpha1.WorkStatus) {
		merged := status.ManifestStatuses
		for _, one := range seen {
			merged = one.mergeInto(merged, stored.Spec.Workload.Manifests)
		}
		if !work.SameManifestStatuses(status.ManifestStatuses, merged) {
			status.ManifestStatuses = merged
		}
		reportCuts(stored, seen, status, metav1.NewTime(c.pods.now()))
	})
}

// paceOf is how much the news hurries: objects that are not healthy yet, or that
// are healthy on the way to something else, take steps that need not all be told.
func paceOf(seen []reflection) report.Pace {
	for _, one := range seen {
		if one.entry != nil && (one.entry.Health != workv1alpha1.ResourceHealthy || !work.ProgressOf(one.entry.Status).Settled) {
			return report.Later
		}
	}
	return report.Soon
}

// reflection is what was seen of the object of one manifest.
type reflection struct {
	identifier workv1alpha1.ResourceIdentifier
	// gone tells that the object is known not to be there.
	gone bool
	// entry is nil when nothing can be said of the object.
	entry *workv1alpha1.ManifestStatus
	// again is after what time to look again; 0 for at the next change.
	again time.Duration
	// cut says what was left out of the status; empty for nothing.
	cut string
}

func (r reflection) mergeInto(statuses []workv1alpha1.ManifestStatus, manifests []workv1alpha1.Manifest) []workv1alpha1.ManifestStatus {
	switch {
	case r.gone:
		return work.DropManifestStatus(statuses, r.identifier, manifests)
	case r.entry != nil:
		return work.MergeManifestStatus(statuses, *r.entry, manifests)
	default:
		return statuses
	}
}

func (c *controller) reflectOne(ctx context.Context, target holder, stored *workv1alpha1.Work, manifest *unstructured.Unstructured) (reflection, error) {
	identifier, err := work.Identify(stored.Spec.Workload.Manifests, manifest)
	if err != nil {
		return reflection{}, err
	}
	one := reflection{identifier: identifier}
	cluster, _ := work.ClusterOf(stored.Namespace)
	observed, cached, err := target.Get(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	switch {
	case apierrors.IsNotFound(err):
		one.gone = true
		return one, nil
	case meta.IsNoMatchError(err):
		// Execution reports a kind that the member does not serve.
		return one, nil
	case err != nil:
		return one, fmt.Errorf("reading %s %s in cluster %s: %w", manifest.GetKind(), client.ObjectKeyFromObject(manifest), cluster, err)
	case !cached && !sameWork(observed, manifest):
		return one, nil
	}
	status, err := c.status(ctx, observed)
	if err != nil {
		return one, fmt.Errorf("cluster %s: reflecting status of %s %s: %w", cluster, manifest.GetKind(), client.ObjectKeyFromObject(manifest), err)
	}
	one.entry = &workv1alpha1.ManifestStatus{Identifier: identifier, Status: status, Health: c.health(ctx, stored, observed)}
	one.again = c.explain(ctx, target, stored, observed, one.entry)
	var cut *work.StatusCut
	if one.entry.Status, cut = work.CutStatus(one.entry.Status, c.options.StatusBytes); cut != nil {
		one.cut = cut.Describe(cluster, identifier)
	}
	return one, nil
}

// sameWork tells whether a member object says that it is of the manifest's Work.
func sameWork(observed, manifest *unstructured.Unstructured) bool {
	before, now := observed.GetAnnotations(), manifest.GetAnnotations()
	return before[workv1alpha1.WorkNamespaceAnnotation] == now[workv1alpha1.WorkNamespaceAnnotation] &&
		before[workv1alpha1.WorkNameAnnotation] == now[workv1alpha1.WorkNameAnnotation]
}
