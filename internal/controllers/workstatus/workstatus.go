// Package workstatus writes the status and health of a Work's objects in the member to the status
// of the Work.
//
// It reads the objects only from caches. The status of an object is removed only if it is known
// that the object was deleted, and never because a cache is not filled yet.
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
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the controller in flags, logs and events.
const Name = "work-status-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of Works of one member that are processed in parallel.
	Workers int
	// Pacing decides how long changes in a member are collected before a pass.
	Pacing loop.PacingPolicy
	// Backoff is the backoff for Works that failed.
	Backoff loop.Backoff
	// Mode is the sync mode of the clusters that this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
	// StatusBytes is the maximum size of the reported status of one object, in bytes. 0 means
	// work.MaxStatusBytes.
	StatusBytes int
}

// DefaultOptions returns the options for push mode clusters.
func DefaultOptions() Options {
	return Options{
		Workers: 5, Pacing: loop.DefaultPacingPolicy(),
		Backoff: loop.Backoff{Base: 5 * time.Millisecond, Max: 30 * time.Second}, Mode: clusterv1alpha1.Push,
	}
}

// Members provides connections to member clusters and reports changes in these clusters.
type Members interface {
	GetForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	Subscribe(notify func(member.Event))
	OnRecovery(notify func(name string))
}

type controller struct {
	options   Options
	karmada   client.Client
	cache     cache.Cache
	members   Members
	rules     interpreter.Source
	events    *loop.Events
	reports   *loop.StatusWriter
	scope     loop.SyncModeScope
	queues    *loop.MemberQueues
	podChecks *podCheckSchedule
	// interpreted contains the Works with objects whose status was interpreted by rules.
	interpreted interpreters.WorkIndex
	// pacer decides how long the changes of one Work in a member are collected before a pass.
	pacer *loop.Pacer[types.NamespacedName]
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, rules interpreter.Source, reports *loop.StatusWriter, o Options) error {
	c := &controller{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, rules: rules, reports: reports,
		scope: loop.SyncModeScope{Clusters: mgr.GetClient(), Mode: o.Mode}, podChecks: newPodCheckSchedule(time.Now),
		events: loop.EventsFor(mgr, Name, o.Events), pacer: loop.NewPacer[types.NamespacedName](o.Pacing, 0),
	}
	c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{
		Name: Name, Workers: o.Workers, Backoff: o.Backoff, IsServed: c.scope.IsServed,
		OnRemoved: c.stopTrackingCluster,
	}, c.reconcile)
	members.Subscribe(c.handleMemberEvent)
	members.OnRecovery(c.queues.RetryNow)
	return errors.Join(mgr.Add(c), mgr.Add(interpreters.NewRunnable(rules, c.requeueForRules)))
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(c.newClusterHandler()); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return c.queues.Start(ctx)
}

// newClusterHandler returns a handler that stops the workers of clusters that are deleted or that
// another process serves now. When this process serves a cluster again, the handler need not queue
// Works, because the watches of the cluster then deliver events for all objects.
func (c *controller) newClusterHandler() toolscache.ResourceEventHandler {
	return loop.Handlers[*clusterv1alpha1.Cluster]{
		Updated: func(before, after *clusterv1alpha1.Cluster) {
			if c.scope.HasLeft(before, after) {
				c.queues.RemoveCluster(after.Name)
			}
		},
		Deleted: func(lastKnown *clusterv1alpha1.Cluster) { c.queues.RemoveCluster(lastKnown.Name) },
	}
}

// handleMemberEvent queues the Work of an object that changed in the member.
func (c *controller) handleMemberEvent(event member.Event) {
	annotations := event.Object().GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation],
		Name: annotations[workv1alpha1.WorkNameAnnotation]}
	if cluster, ok := work.ClusterOf(key.Namespace); !ok || cluster != event.Member || key.Name == "" {
		return
	}
	c.queues.Add(event.Member, key, loop.PriorityOf(event.Initial), c.pacer.CollectDelay(c.options.Pacing.Collect, time.Now()))
}

// reconcile reports one Work's object statuses. The Work and its Cluster are shared with the cache and
// must not be changed.
func (c *controller) reconcile(ctx context.Context, clusterName string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &workv1alpha1.Work{}
	err := c.karmada.Get(ctx, key, stored, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || stored.DeletionTimestamp != nil {
		c.interpreted.Delete(key)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading Work %s: %w", key, err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, types.NamespacedName{Name: clusterName}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.SyncMode != c.options.Mode {
		return reconcile.Result{}, nil
	}
	target, err := c.members.GetForCluster(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	requeueAfter, err := c.reflect(ctx, target, stored)
	return reconcile.Result{RequeueAfter: requeueAfter}, err
}

// memberAccess is the part of a member connection that a pass needs.
type memberAccess interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error)
	Client() client.Client
}

// reflect reports the status and health of all objects of the Work with one write. It continues
// with the other objects if one object fails. It returns the delay until the next pass, or 0 if the
// next pass starts only after a change.
func (c *controller) reflect(ctx context.Context, target memberAccess, stored *workv1alpha1.Work) (requeueAfter time.Duration, err error) {
	var reflections []reflection
	var failures, healthFailures []error
	for ordinal := range stored.Spec.Workload.Manifests {
		result, err := c.reflectManifest(ctx, target, stored, ordinal)
		if errors.Is(err, errInvalidManifest) {
			// The manifest is skipped, because the execution controller reports it.
			continue
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		reflections = append(reflections, result)
		failures, healthFailures = append(failures, result.statusErr), append(healthFailures, result.healthErr)
		if result.requeueAfter > 0 && (requeueAfter == 0 || result.requeueAfter < requeueAfter) {
			requeueAfter = result.requeueAfter
		}
	}
	if err := ctx.Err(); err != nil {
		// This process no longer serves the cluster. The rules that it canceled say nothing.
		return 0, err
	}
	if len(reflections) > 0 {
		c.reportStatuses(stored, reflections)
	}
	if err := errors.Join(failures...); err != nil {
		c.events.RecordFailure(stored, workv1alpha1.EventReasonReflectStatusFailed, err)
		return 0, err
	}
	c.events.ClearFailure(stored, workv1alpha1.EventReasonReflectStatusFailed)
	if slices.ContainsFunc(reflections, func(result reflection) bool { return result.status != nil }) {
		c.events.RecordSuccess(stored, workv1alpha1.EventReasonReflectStatusSucceed, "Reflected the status of the objects in the cluster")
	}
	return requeueAfter, errors.Join(healthFailures...)
}

// reportStatuses submits the new statuses of objects to the status writer. All other objects keep
// their last reported status.
func (c *controller) reportStatuses(stored *workv1alpha1.Work, reflections []reflection) {
	c.reports.Submit(stored, loop.ManifestStatusesPart, reportedState(reflections), func(status *workv1alpha1.WorkStatus) {
		merged := status.ManifestStatuses
		for _, result := range reflections {
			merged = result.mergeInto(merged, stored.Spec.Workload.Manifests)
		}
		if !work.EqualManifestStatuses(status.ManifestStatuses, merged) {
			status.ManifestStatuses = merged
		}
		now := metav1.NewTime(c.podChecks.now())
		reportTruncated(stored, reflections, status, now)
		reportInterpretation(stored, reflections, status, now)
	})
}

// reportedState returns the pacing state in which the statuses are reported. It returns the state
// in progress if an object is not healthy yet or a rollout is not complete.
func reportedState(reflections []reflection) loop.StatusState {
	for _, result := range reflections {
		if result.status != nil && (result.status.Health != workv1alpha1.ResourceHealthy || !work.ParseProgress(result.status.Status).IsStable) {
			return loop.StatusInProgress
		}
	}
	return loop.StatusSettled
}

// reflection is the observed state of the object of one manifest.
type reflection struct {
	identifier workv1alpha1.ResourceIdentifier
	// isDeleted is true if the member reported that the object does not exist.
	isDeleted bool
	// status is nil if the state of the object is unknown.
	status *workv1alpha1.ManifestStatus
	// requeueAfter is the delay until the next pass. 0 means that the next pass starts only after a
	// change.
	requeueAfter time.Duration
	// truncation describes what was removed from a status that is too large. It is empty if the
	// status is complete.
	truncation string
	// statusErr and healthErr are the errors of the interpreter.
	statusErr, healthErr error
}

func (r reflection) mergeInto(statuses []workv1alpha1.ManifestStatus, manifests []workv1alpha1.Manifest) []workv1alpha1.ManifestStatus {
	switch {
	case r.isDeleted && work.IsFinishedJob(statuses, r.identifier):
		return statuses // the status proves that the Job needs no further execution
	case r.isDeleted:
		return work.DropManifestStatus(statuses, r.identifier, manifests)
	case r.status != nil:
		return work.MergeManifestStatus(statuses, *r.status, manifests)
	default:
		return statuses
	}
}

// errInvalidManifest reports that a manifest cannot be decoded.
var errInvalidManifest = errors.New("the manifest cannot be decoded")

// reflectManifest reflects the object of the manifest with the given ordinal. It decodes only the
// manifest's identifier, because a pass runs for each change of the object.
func (c *controller) reflectManifest(ctx context.Context, target memberAccess, stored *workv1alpha1.Work, ordinal int) (reflection, error) {
	identifier, err := work.IdentifierAt(stored.Spec.Workload.Manifests, ordinal)
	if err != nil {
		return reflection{}, errInvalidManifest
	}
	result := reflection{identifier: identifier}
	cluster, _ := work.ClusterOf(stored.Namespace)
	kind := schema.GroupVersionKind{Group: identifier.Group, Version: identifier.Version, Kind: identifier.Kind}
	key := types.NamespacedName{Namespace: identifier.Namespace, Name: identifier.Name}
	observed, cached, err := target.Get(ctx, kind, key)
	switch {
	case apierrors.IsNotFound(err):
		result.isDeleted = true
		return result, nil
	case meta.IsNoMatchError(err):
		// A kind that the member does not serve is no error here, because the execution controller
		// reports it.
		return result, nil
	case err != nil:
		return result, fmt.Errorf("reading %s %s in cluster %s: %w", kind.Kind, key, cluster, err)
	case !cached:
		manifest, err := work.DecodeManifestMetadata(stored.Spec.Workload.Manifests[ordinal])
		if err != nil {
			return reflection{}, errInvalidManifest
		}
		if !namesSameWork(observed, manifest) {
			return result, nil
		}
	}
	// The Work is added to the index before the rules are read, so that no change of the rules is
	// missed.
	c.interpreted.Add(client.ObjectKeyFromObject(stored), observed.GroupVersionKind())
	health, err := c.interpretHealth(ctx, stored, observed)
	if interpreter.IsBusy(err) {
		return result, err // the reported state stays, and the pass is repeated
	}
	result.healthErr = err
	status, err := c.interpretStatus(ctx, observed)
	if err != nil {
		err = fmt.Errorf("cluster %s: reflecting status of %s %s: %w", cluster, kind.Kind, key, err)
		if interpreter.IsBusy(err) {
			return result, err
		}
		result.statusErr = err
		return result, nil
	}
	result.status = &workv1alpha1.ManifestStatus{Identifier: identifier, Status: status, Health: health}
	result.requeueAfter = c.addPodFailure(ctx, target, stored, observed, result.status)
	var truncated *work.OmittedStatus
	if result.status.Status, truncated = work.TruncateStatus(result.status.Status, c.options.StatusBytes); truncated != nil {
		result.truncation = truncated.Describe(cluster, identifier)
	}
	return result, nil
}

// namesSameWork reports whether the annotations of an object in the member name the Work of the
// manifest.
func namesSameWork(observed, manifest *unstructured.Unstructured) bool {
	before, now := observed.GetAnnotations(), manifest.GetAnnotations()
	return before[workv1alpha1.WorkNamespaceAnnotation] == now[workv1alpha1.WorkNamespaceAnnotation] &&
		before[workv1alpha1.WorkNameAnnotation] == now[workv1alpha1.WorkNameAnnotation]
}
