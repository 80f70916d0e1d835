package execution

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/jsonedit"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// addEventHandlers registers the event handlers for Clusters and Works. It registers the handler
// for Clusters first, because a Work is queued only if its Cluster is in the cache.
func (c *controller) addEventHandlers(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(c.newClusterHandler(ctx)); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	works, err := c.cache.GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	if _, err := works.AddEventHandler(loop.Handlers[*workv1alpha1.Work]{
		Added: func(added *workv1alpha1.Work, isInInitialList bool) {
			c.enqueueWork(ctx, added, loop.PriorityOf(isInInitialList))
		},
		Updated: func(before, after *workv1alpha1.Work) {
			if requiresPass(before, after) {
				c.enqueueWork(ctx, after, loop.LivePriority)
			}
		},
		Deleted: func(lastKnown *workv1alpha1.Work) { c.handleWorkDeletion(ctx, client.ObjectKeyFromObject(lastKnown)) },
	}); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	return nil
}

// newClusterHandler returns a handler that starts and stops serving clusters. It also queues the
// Works that wait for a change of their cluster.
func (c *controller) newClusterHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return loop.Handlers[*clusterv1alpha1.Cluster]{
		Added: func(added *clusterv1alpha1.Cluster, isInInitialList bool) {
			if !isInInitialList {
				c.enqueueAllWorks(ctx, added)
			}
		},
		Updated: func(before, after *clusterv1alpha1.Cluster) { c.handleClusterUpdate(ctx, before, after) },
		Deleted: func(lastKnown *clusterv1alpha1.Cluster) { c.queues.RemoveCluster(lastKnown.Name) },
	}
}

func (c *controller) handleClusterUpdate(ctx context.Context, older, newer *clusterv1alpha1.Cluster) {
	switch {
	case c.scope.HasLeft(older, newer):
		// Another process serves the cluster from now on. Watches by this process would put load on
		// the member, and repairs would interfere with the other process.
		c.queues.RemoveCluster(newer.Name)
		c.members.CloseMember(newer.Name)
	case c.scope.HasJoined(older, newer):
		c.enqueueAllWorks(ctx, newer)
	case older.Spec.ID != "" && older.Spec.ID != newer.Spec.ID:
		// Every Work is delivered again, because a user accepted that the name now belongs to
		// another cluster.
		c.enqueueAllWorks(ctx, newer)
	case shouldRetryWorks(older, newer):
		c.guard.AllowHeldEventAgain(newer.Name)
		c.queues.RetryNow(newer.Name)
	}
}

// enqueueAllWorks queues all Works of a cluster.
func (c *controller) enqueueAllWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) {
	works := &workv1alpha1.WorkList{}
	if err := c.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		// The error is ignored, because a read from a cache fails only when the process ends.
		return
	}
	for i := range works.Items {
		c.queues.Add(cluster.Name, client.ObjectKeyFromObject(&works.Items[i]), loop.LowPriority, 0)
	}
}

// requeueWorksOfKind queues the Works with objects of a kind that a member serves again. Some of
// these Works may have failed while the kind was not served, and changes of their objects were not
// observed.
func (c *controller) requeueWorksOfKind(name string, kind schema.GroupVersionKind) {
	works := &workv1alpha1.WorkList{}
	err := c.karmada.List(context.Background(), works, client.InNamespace(work.ExecutionNamespace(name)), client.UnsafeDisableDeepCopy)
	if err != nil {
		// The error is ignored, because a read from a cache fails only when the process ends.
		return
	}
	for i := range works.Items {
		if work.HasManifestOfKind(&works.Items[i], kind) {
			c.queues.Add(name, client.ObjectKeyFromObject(&works.Items[i]), loop.LowPriority, 0)
		}
	}
}

// handleWorkDeletion stops tracking a deleted Work. If the cluster is served, a further pass does
// the same again, because a pass that runs now may track the Work again.
func (c *controller) handleWorkDeletion(ctx context.Context, key types.NamespacedName) {
	c.stopTracking(key)
	if name, ok := work.ClusterOf(key.Namespace); ok && c.scope.IsServed(ctx, name) {
		c.queues.Add(name, key, loop.LivePriority, 0)
	}
}

// stopTrackingCluster deletes the state in memory about a cluster and its Works.
func (c *controller) stopTrackingCluster(cluster string) {
	c.deletionRates.deleteCluster(cluster)
	c.tracker.deleteNamespace(work.ExecutionNamespace(cluster))
	c.interpreted.DeleteNamespace(work.ExecutionNamespace(cluster))
	c.guard.StopTrackingCluster(cluster)
}

func (c *controller) stopTracking(key types.NamespacedName) {
	c.guard.StopTrackingWork(key)
	c.tracker.deleteWork(key)
	c.interpreted.Delete(key)
	c.reports.Delete(key)
}

func (c *controller) clusterExists(ctx context.Context, name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	return c.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil
}

// shouldRetryWorks reports whether Works that failed before may succeed after a change of the
// Cluster: the cluster is ready again, is deleted, becomes unready during its deletion, serves
// other kinds, or a user confirmed held deletions.
func shouldRetryWorks(before, after *clusterv1alpha1.Cluster) bool {
	confirmation := workv1alpha1.ConfirmDeletionsAnnotation
	return !isReady(before) && isReady(after) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
		after.DeletionTimestamp != nil && isReady(before) && !isReady(after) ||
		before.Annotations[confirmation] != after.Annotations[confirmation] ||
		!reflect.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
}

func (c *controller) enqueueWork(ctx context.Context, karmadaWork *workv1alpha1.Work, priority int) {
	name, ok := work.ClusterOf(karmadaWork.Namespace)
	if !ok {
		c.recordUndelivered(karmadaWork, priority, errNotInExecutionNamespace)
		return
	}
	if !c.clusterExists(ctx, name) {
		// The Work is not queued, because the event handler for Clusters queues it when the Cluster
		// is created.
		c.recordUndelivered(karmadaWork, priority, fmt.Errorf("cluster %q does not exist", name))
		return
	}
	c.queues.Add(name, client.ObjectKeyFromObject(karmadaWork), priority, 0)
}

// recordUndelivered records an event on a Work that no cluster receives. It records the event when
// the Work is created, and not again at each start of this process.
func (c *controller) recordUndelivered(karmadaWork *workv1alpha1.Work, priority int, err error) {
	if priority != loop.LowPriority {
		c.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonSyncFailed, err)
	}
}

var errNotInExecutionNamespace = errors.New("not delivered to any cluster: a Work must be in the execution namespace of a cluster, " +
	clusterv1alpha1.ExecutionNamespacePrefix + "<cluster>")

// requiresPass reports whether an update of a Work requires a pass, because the spec or the
// permission to delete the objects changed, or the deletion started. It also reports true if newer
// is another Work with the same name, which is possible if the watch was interrupted.
func requiresPass(older, newer *workv1alpha1.Work) bool {
	hasSame := func(annotation string) bool { return older.Annotations[annotation] == newer.Annotations[annotation] }
	return older.UID != newer.UID || older.Generation != newer.Generation ||
		!hasSame(workv1alpha1.DeletionAllowedAnnotation) || !hasSame(workv1alpha1.HeldDeletionAnnotation) ||
		(older.DeletionTimestamp == nil) != (newer.DeletionTimestamp == nil)
}

// handleMemberEvent queues the Work of an object that another program changed or deleted in the
// member.
func (c *controller) handleMemberEvent(event member.Event) {
	if event.Old != nil && event.New != nil && !mayHaveDrifted(event.Old, event.New) {
		return
	}
	object := event.Old
	if object == nil {
		object = event.New
	}
	annotations := object.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation],
		Name: annotations[workv1alpha1.WorkNameAnnotation]}
	version, isApplied := c.tracker.appliedVersion(objectKey{work: key, kind: event.Kind, object: client.ObjectKeyFromObject(object)})
	switch {
	case event.New == nil: // the object was deleted
	case isApplied && version == event.New.GetResourceVersion(), !isApplied && event.Old == nil:
		// No pass is needed: the event is caused by a write of this process, or by the first list
		// after a start, when every Work gets a pass anyway.
		return
	}
	// The annotations come from the member, so they are trusted only if they name a Work of that
	// member.
	if cluster, ok := work.ClusterOf(key.Namespace); ok && cluster == event.Member && key.Name != "" {
		c.queues.Add(event.Member, key, loop.LivePriority, 0)
	}
}

// mayHaveDrifted reports whether an update in the member may have changed fields of the manifest.
// This check must be cheap, because members send an event for every change of a status.
func mayHaveDrifted(before, after *unstructured.Unstructured) bool {
	if before.GetUID() != after.GetUID() {
		// The object was deleted and created again while the watch was interrupted.
		return true
	}
	listed := before.GetAnnotations()
	if !sameListedValues(before.GetLabels(), after.GetLabels(), listed[workv1alpha2.ManagedLabels]) ||
		!sameListedValues(listed, after.GetAnnotations(), listed[workv1alpha2.ManagedAnnotations]) {
		return true
	}
	if before.GetGeneration() != 0 { // other kinds have no generation, so their content is compared
		return before.GetGeneration() != after.GetGeneration()
	}
	return !jsonedit.EqualFields(before.Object, after.Object, "metadata", "status")
}

func sameListedValues(before, after map[string]string, listed string) bool {
	for key := range strings.SplitSeq(listed, ",") {
		older, had := before[key]
		newer, has := after[key]
		if had != has || older != newer {
			return false
		}
	}
	return true
}
