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
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/work"
)

// addEventHandlers registers the event handlers for Clusters and Works. Clusters come first,
// because a Work is enqueued only if its Cluster is in the cache.
func (c *controller) addEventHandlers(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(c.onCluster(ctx)); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	works, err := c.cache.GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	if _, err := works.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) { c.enqueueWork(obj, queuePriority(initial)) },
		UpdateFunc: func(before, after any) {
			if requiresPass(before, after) {
				c.enqueueWork(after, fanout.PriorityLive)
			}
		},
		DeleteFunc: func(obj any) {
			if deleted, ok := lastKnownState(obj).(*workv1alpha1.Work); ok {
				c.onWorkDeleted(client.ObjectKeyFromObject(deleted))
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	return nil
}

// onCluster starts and stops serving clusters, and enqueues Works that wait for a change of
// their cluster.
func (c *controller) onCluster(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if joined, ok := obj.(*clusterv1alpha1.Cluster); ok && !initial {
				c.enqueueAllWorks(ctx, joined)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*clusterv1alpha1.Cluster)
			newer, ok2 := after.(*clusterv1alpha1.Cluster)
			if ok && ok2 {
				c.onClusterUpdate(ctx, older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			if deleted, ok := lastKnownState(obj).(*clusterv1alpha1.Cluster); ok {
				c.pools.RemoveCluster(deleted.Name)
				c.stopTrackingDeletions(deleted.Name)
			}
		},
	}
}

func (c *controller) onClusterUpdate(ctx context.Context, older, newer *clusterv1alpha1.Cluster) {
	switch {
	case c.scope.HasLeft(older, newer):
		// Another process serves the cluster from now on. Our watches would be a cost for the
		// member, and our repairs would interfere with that process.
		c.pools.RemoveCluster(newer.Name)
		c.stopTrackingDeletions(newer.Name)
		c.members.CloseMember(newer.Name)
	case c.scope.HasJoined(older, newer):
		c.enqueueAllWorks(ctx, newer)
	case older.Spec.ID != "" && older.Spec.ID != newer.Spec.ID:
		// A user accepted that another cluster is behind the name: every Work is delivered
		// again.
		c.enqueueAllWorks(ctx, newer)
	case shouldRetryWorks(older, newer):
		if c.judge != nil {
			c.judge.RepeatHeldEvent(newer.Name)
		}
		c.pools.RetryNow(newer.Name)
	}
}

// enqueueAllWorks enqueues all Works of a cluster that this process starts to serve.
func (c *controller) enqueueAllWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) {
	works := &workv1alpha1.WorkList{}
	if err := c.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		// Reading a cache fails only when the process ends.
		return
	}
	for i := range works.Items {
		c.pools.Add(cluster.Name, client.ObjectKeyFromObject(&works.Items[i]), fanout.PriorityInitial, 0)
	}
}

// onKindServed enqueues the Works with objects of a kind that a member serves again. Some of them
// failed in the meantime, and changes of their objects were not observed.
func (c *controller) onKindServed(name string, kind schema.GroupVersionKind) {
	works := &workv1alpha1.WorkList{}
	err := c.karmada.List(context.Background(), works, client.InNamespace(work.ExecutionNamespace(name)), client.UnsafeDisableDeepCopy)
	if err != nil {
		// Reading a cache fails only when the process ends.
		return
	}
	for i := range works.Items {
		if work.HasManifestOfKind(&works.Items[i], kind) {
			c.pools.Add(name, client.ObjectKeyFromObject(&works.Items[i]), fanout.PriorityInitial, 0)
		}
	}
}

// onWorkDeleted stops tracking a deleted Work. If the cluster is served, a worker does so,
// because the Work may be in process right now.
func (c *controller) onWorkDeleted(key types.NamespacedName) {
	if name, ok := work.ClusterOf(key.Namespace); ok && c.scope.IsServed(name) {
		c.pools.Add(name, key, fanout.PriorityLive, 0)
		return
	}
	c.stopTracking(key)
}

// stopTrackingDeletions deletes the state about deletions in a cluster.
func (c *controller) stopTrackingDeletions(cluster string) {
	c.deletionBudgets.deleteCluster(cluster)
	if c.judge != nil {
		c.judge.StopTrackingCluster(cluster)
	}
}

func (c *controller) stopTracking(key types.NamespacedName) {
	if c.judge != nil {
		c.judge.StopTrackingWork(key)
	}
	c.tracker.deleteWork(key)
	c.reports.Delete(key)
}

func (c *controller) clusterExists(name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	return c.karmada.Get(context.Background(), types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil
}

// shouldRetryWorks reports whether a change of the Cluster may let Works succeed that failed
// before: the cluster is ready again, is deleted, is lost while it is deleted, serves other
// kinds, or a user confirmed held deletions.
func shouldRetryWorks(before, after *clusterv1alpha1.Cluster) bool {
	confirmation := workv1alpha1.ConfirmDeletionsAnnotation
	return !isReady(before) && isReady(after) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
		after.DeletionTimestamp != nil && isReady(before) && !isReady(after) ||
		before.Annotations[confirmation] != after.Annotations[confirmation] ||
		!reflect.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
}

func queuePriority(initial bool) int {
	if initial {
		return fanout.PriorityInitial
	}
	return fanout.PriorityLive
}

func lastKnownState(obj any) any {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

func (c *controller) enqueueWork(obj any, priority int) {
	karmadaWork, ok := lastKnownState(obj).(*workv1alpha1.Work)
	if !ok {
		return
	}
	name, ok := work.ClusterOf(karmadaWork.Namespace)
	if !ok {
		c.recordUndelivered(karmadaWork, priority, errNotInExecutionNamespace)
		return
	}
	if !c.clusterExists(name) {
		// The event handler for Clusters enqueues the Work when the Cluster is created.
		c.recordUndelivered(karmadaWork, priority, fmt.Errorf("cluster %q does not exist", name))
		return
	}
	c.pools.Add(name, client.ObjectKeyFromObject(karmadaWork), priority, 0)
}

// recordUndelivered records an event on a Work that no cluster receives. It does so when the
// Work is created, and not again at each start of this process.
func (c *controller) recordUndelivered(karmadaWork *workv1alpha1.Work, priority int, err error) {
	if priority != fanout.PriorityInitial {
		c.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonSyncFailed, err)
	}
}

var errNotInExecutionNamespace = errors.New("not delivered to any cluster: a Work must be in the execution namespace of a cluster, " +
	clusterv1alpha1.ExecutionNamespacePrefix + "<cluster>")

// requiresPass reports whether an update of a Work requires a pass: the spec, the start of the
// deletion, or the verdict on the deletion changed. The Work may also be another one of the
// same name, if the watch was interrupted.
func requiresPass(before, after any) bool {
	older, ok := before.(*workv1alpha1.Work)
	newer, ok2 := after.(*workv1alpha1.Work)
	if !ok || !ok2 {
		return false
	}
	verdict := workv1alpha1.DeletionAllowedAnnotation
	return older.UID != newer.UID || older.Generation != newer.Generation ||
		older.Annotations[verdict] != newer.Annotations[verdict] || (older.DeletionTimestamp == nil) != (newer.DeletionTimestamp == nil)
}

// onMemberEvent enqueues the Work of a member object that another program changed or deleted.
func (c *controller) onMemberEvent(event member.Event) {
	// Every Work gets a pass after a start anyway.
	if event.Initial || event.Old != nil && event.New != nil && !mayHaveDrifted(event.Old, event.New) {
		return
	}
	object := event.Old
	if object == nil {
		object = event.New
	}
	annotations := object.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation], Name: annotations[workv1alpha1.WorkNameAnnotation]}
	if event.Old == nil && !c.tracker.hasOtherVersion(
		objectKey{work: key, kind: event.Kind, object: client.ObjectKeyFromObject(object)}, object.GetResourceVersion()) {
		// The event is the result of our own create.
		return
	}
	// The annotations are data from the member. They are trusted only for Works of that member.
	if cluster, ok := work.ClusterOf(key.Namespace); ok && cluster == event.Member && key.Name != "" {
		c.pools.Add(event.Member, key, fanout.PriorityLive, 0)
	}
}

// mayHaveDrifted reports whether an update in the member may affect fields of the manifest.
// Members send an event for every change of a status, so this check must be cheap.
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
	if before.GetGeneration() != 0 {
		return before.GetGeneration() != after.GetGeneration()
	}
	return !sameContent(before, after)
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

// sameContent compares objects of kinds without a generation, except for metadata and status.
func sameContent(before, after *unstructured.Unstructured) bool {
	if len(before.Object) != len(after.Object) {
		return false
	}
	for field, value := range before.Object {
		if field != "metadata" && field != "status" && !reflect.DeepEqual(value, after.Object[field]) {
			return false
		}
	}
	return true
}
