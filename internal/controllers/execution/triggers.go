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

// watch queues Works that appear, change or go, and follows the clusters. Clusters
// come first, for a Work is queued only if its cluster is known.
func (c *controller) watch(ctx context.Context) error {
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
		AddFunc: func(obj any, initial bool) { c.queue(obj, priority(initial)) },
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				c.queue(after, fanout.Live)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := final(obj).(*workv1alpha1.Work); ok {
				c.leave(client.ObjectKeyFromObject(gone))
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	return nil
}

// onCluster takes up and lays down clusters, and wakes Works that wait for theirs.
func (c *controller) onCluster(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if joined, ok := obj.(*clusterv1alpha1.Cluster); ok && !initial {
				c.takeUp(ctx, joined)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*clusterv1alpha1.Cluster)
			newer, ok2 := after.(*clusterv1alpha1.Cluster)
			if ok && ok2 {
				c.follow(ctx, older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := final(obj).(*clusterv1alpha1.Cluster); ok {
				c.pools.Drop(gone.Name)
				c.forgetDeletions(gone.Name)
			}
		},
	}
}

func (c *controller) follow(ctx context.Context, older, newer *clusterv1alpha1.Cluster) {
	switch {
	case c.scope.Left(older, newer):
		// Another process serves the cluster from now on. That we still watch it
		// would cost it, and repair what is not ours to repair.
		c.pools.Drop(newer.Name)
		c.forgetDeletions(newer.Name)
		c.members.Forget(newer.Name)
	case c.scope.Joined(older, newer):
		c.takeUp(ctx, newer)
	case older.Spec.ID != "" && older.Spec.ID != newer.Spec.ID:
		// A person accepted that the cluster is another one: all of it is delivered anew.
		c.takeUp(ctx, newer)
	case promising(older, newer):
		if c.judge != nil {
			c.judge.Reconsider(newer.Name)
		}
		c.pools.Wake(newer.Name)
	}
}

// takeUp queues all Works of a cluster that is served from now on.
func (c *controller) takeUp(ctx context.Context, cluster *clusterv1alpha1.Cluster) {
	works := &workv1alpha1.WorkList{}
	if err := c.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		// The cache ends, and with it this process.
		return
	}
	for i := range works.Items {
		c.pools.Add(cluster.Name, client.ObjectKeyFromObject(&works.Items[i]), fanout.Initial, 0)
	}
}

// onReturn queues the Works of a kind that a member serves again: some failed
// meanwhile, and changes of their objects were not seen.
func (c *controller) onReturn(name string, kind schema.GroupVersionKind) {
	works := &workv1alpha1.WorkList{}
	err := c.karmada.List(context.Background(), works, client.InNamespace(work.ExecutionNamespace(name)), client.UnsafeDisableDeepCopy)
	if err != nil {
		// The cache ends, and with it this process.
		return
	}
	for i := range works.Items {
		if work.Carries(&works.Items[i], kind) {
			c.pools.Add(name, client.ObjectKeyFromObject(&works.Items[i]), fanout.Initial, 0)
		}
	}
}

// leave drops what is remembered of a Work that is gone: in its turn, for it may be
// worked on right now, or at once when nobody will.
func (c *controller) leave(key types.NamespacedName) {
	if name, ok := work.ClusterOf(key.Namespace); ok && c.scope.Serves(name) {
		c.pools.Add(name, key, fanout.Live, 0)
		return
	}
	c.forget(key)
}

// forgetDeletions drops what is remembered of deletions in a cluster.
func (c *controller) forgetDeletions(cluster string) {
	c.budgets.forget(cluster)
	if c.judge != nil {
		c.judge.ForgetCluster(cluster)
	}
}

func (c *controller) forget(key types.NamespacedName) {
	if c.judge != nil {
		c.judge.Forget(key)
	}
	c.applied.forget(key)
	c.reports.Forget(key)
}

func (c *controller) exists(name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	return c.karmada.Get(context.Background(), types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil
}

// promising tells that Works which could not be handled before may be now: the
// cluster is back, leaves, is lost while it leaves, serves other kinds, or a user
// has confirmed what was held.
func promising(before, after *clusterv1alpha1.Cluster) bool {
	confirmation := workv1alpha1.ConfirmDeletionsAnnotation
	return !ready(before) && ready(after) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
		after.DeletionTimestamp != nil && ready(before) && !ready(after) ||
		before.Annotations[confirmation] != after.Annotations[confirmation] ||
		!reflect.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
}

func priority(initial bool) int {
	if initial {
		return fanout.Initial
	}
	return fanout.Live
}

func final(obj any) any {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

func (c *controller) queue(obj any, priority int) {
	of, ok := final(obj).(*workv1alpha1.Work)
	if !ok {
		return
	}
	name, ok := work.ClusterOf(of.Namespace)
	if !ok {
		c.warn(of, priority, errNoExecutionSpace)
		return
	}
	if !c.exists(name) {
		// Its coming leads back here.
		c.warn(of, priority, fmt.Errorf("there is no cluster %q", name))
		return
	}
	c.pools.Add(name, client.ObjectKeyFromObject(of), priority, 0)
}

// warn writes the event of a Work that no cluster gets when the Work comes, and not again
// at each start of this process.
func (c *controller) warn(of *workv1alpha1.Work, priority int, err error) {
	if priority != fanout.Initial {
		c.events.Failed(of, workv1alpha1.EventReasonSyncFailed, err)
	}
}

var errNoExecutionSpace = errors.New("no cluster gets it: a Work belongs into the execution namespace of a cluster, " +
	clusterv1alpha1.ExecutionSpacePrefix + "<cluster>")

// changed reports whether an update concerns the member: another spec, the end, or the
// verdict on it. A Work may also be another one of the same name, if a watch was
// interrupted meanwhile.
func changed(before, after any) bool {
	older, ok := before.(*workv1alpha1.Work)
	newer, ok2 := after.(*workv1alpha1.Work)
	if !ok || !ok2 {
		return false
	}
	verdict := workv1alpha1.DeletionAllowedAnnotation
	return older.UID != newer.UID || older.Generation != newer.Generation ||
		older.Annotations[verdict] != newer.Annotations[verdict] || (older.DeletionTimestamp == nil) != (newer.DeletionTimestamp == nil)
}

// onMemberEvent queues the Work of a member object that was changed or removed
// by others.
func (c *controller) onMemberEvent(event member.Event) {
	// Initial: every Work is looked at after a start anyway.
	if event.Initial || event.Old != nil && event.New != nil && !drifted(event.Old, event.New) {
		return
	}
	known := event.Old
	if known == nil {
		known = event.New
	}
	annotations := known.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation], Name: annotations[workv1alpha1.WorkNameAnnotation]}
	if event.Old == nil && !c.applied.differs(
		objectKey{work: key, kind: event.Kind, object: client.ObjectKeyFromObject(known)}, known.GetResourceVersion()) {
		// It appeared because we made it.
		return
	}
	// A member says which Work an object is of, but only of its own.
	if cluster, ok := work.ClusterOf(key.Namespace); ok && cluster == event.Member && key.Name != "" {
		c.pools.Add(event.Member, key, fanout.Live, 0)
	}
}

// drifted tells whether an update in the member may concern what the manifest
// says. Members report every change of a status, so this must be cheap.
func drifted(before, after *unstructured.Unstructured) bool {
	if before.GetUID() != after.GetUID() {
		// Deleted and made again while nobody watched.
		return true
	}
	listed := before.GetAnnotations()
	if !sameKeys(before.GetLabels(), after.GetLabels(), listed[workv1alpha2.ManagedLabels]) ||
		!sameKeys(listed, after.GetAnnotations(), listed[workv1alpha2.ManagedAnnotations]) {
		return true
	}
	if before.GetGeneration() != 0 {
		return before.GetGeneration() != after.GetGeneration()
	}
	return !sameContent(before, after)
}

func sameKeys(before, after map[string]string, listed string) bool {
	for key := range strings.SplitSeq(listed, ",") {
		older, had := before[key]
		newer, has := after[key]
		if had != has || older != newer {
			return false
		}
	}
	return true
}

// sameContent compares objects of kinds that count no generations, metadata and
// status left out.
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
