package execution

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// watch queues Works that appear, change or go, and wakes those that wait for a
// cluster when it becomes ready.
func (c *controller) watch(ctx context.Context) error {
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
		DeleteFunc: func(obj any) { c.queue(obj, fanout.Live) },
	}); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			older, ok := before.(*clusterv1alpha1.Cluster)
			newer, ok2 := after.(*clusterv1alpha1.Cluster)
			if ok && ok2 && returned(older, newer) {
				c.pools.Wake(newer.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := final(obj).(*clusterv1alpha1.Cluster); ok {
				c.pools.Drop(gone.Name)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return nil
}

// returned tells that Works which could not be handled before can be now.
func returned(before, after *clusterv1alpha1.Cluster) bool {
	return !ready(before) && ready(after) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
		before.Spec.SyncMode != after.Spec.SyncMode
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
	if cluster, ok := work.ClusterOf(of.Namespace); ok {
		c.pools.Add(cluster, client.ObjectKeyFromObject(of), priority, 0)
	}
}

// changed tells that an update concerns the member: another spec, or the end.
func changed(before, after any) bool {
	older, ok := before.(*workv1alpha1.Work)
	newer, ok2 := after.(*workv1alpha1.Work)
	if !ok || !ok2 {
		return false
	}
	return older.Generation != newer.Generation || (older.DeletionTimestamp == nil) != (newer.DeletionTimestamp == nil)
}

// onMemberEvent queues the Work of a member object that was changed or removed
// by others.
func (c *controller) onMemberEvent(event member.Event) {
	// Initial: every Work is looked at after a start anyway.
	if event.Initial || event.Old == nil || event.New != nil && !drifted(event.Old, event.New) {
		return
	}
	annotations := event.Old.GetAnnotations()
	key := types.NamespacedName{Namespace: annotations[workv1alpha1.WorkNamespaceAnnotation], Name: annotations[workv1alpha1.WorkNameAnnotation]}
	// A member says which Work an object is of, but only of its own.
	if cluster, ok := work.ClusterOf(key.Namespace); ok && cluster == event.Member && key.Name != "" {
		c.pools.Add(event.Member, key, fanout.Live, 0)
	}
}

// drifted tells whether an update in the member may concern what the manifest
// says. Members report every change of a status, so this must be cheap.
func drifted(before, after *unstructured.Unstructured) bool {
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
