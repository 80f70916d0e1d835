package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// TakeOutAfter is how long after the deletion of a Cluster its bindings are left to
// their schedulers. Then the controller manager takes the cluster out of them.
const TakeOutAfter = 30 * time.Second

// NameHoldersAfter is how long after the deletion of a Cluster the condition Leaving
// begins to name what holds it: usually it is gone by then.
const NameHoldersAfter = 5 * time.Second

// namedHolders is how many Works or bindings the condition Leaving names.
const namedHolders = 3

// worksWait is what the Works of a Cluster wait for.
func worksWait(cluster *clusterv1alpha1.Cluster) string {
	return cmp.Or(LeavingCluster{Cluster: cluster}.unreachable(), worksUnderWay)
}

// bindingsWait is what bindings wait for.
func bindingsWait() string {
	return fmt.Sprintf("its scheduler takes it out, or karmada-controller-manager %s after the deletion", TakeOutAfter)
}

// Remains is what keeps a Cluster that was deleted.
type Remains struct {
	// WorksGone says that the cluster has no Works and gets none. Without it Works may
	// be empty all the same.
	WorksGone bool
	// Works and Bindings are names, sorted.
	Works, Bindings []string
}

// ReportLeaving brings the conditions of a Cluster that was deleted in line with what
// remains of it, which is known for certain. As long as Works remain the condition
// Ready stays, because only a cluster that is ready has its objects deleted.
func ReportLeaving(cluster *clusterv1alpha1.Cluster, remains Remains, now time.Time) {
	stored := &cluster.Status.Conditions
	leaving := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionLeaving, Status: metav1.ConditionTrue,
		ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	named := cluster.DeletionTimestamp != nil && now.Sub(cluster.DeletionTimestamp.Time) >= NameHoldersAfter
	switch {
	case !remains.WorksGone:
		leaving.Reason = clusterv1alpha1.LeavingWorksRemainReason
		leaving.Message = held("Works", remains.Works, named, worksWait(cluster))
	case len(remains.Bindings) > 0:
		leaving.Reason = clusterv1alpha1.LeavingBindingsRemainReason
		leaving.Message = held("bindings", remains.Bindings, named, bindingsWait())
	default:
		leaving.Reason = clusterv1alpha1.LeavingFinalizersRemainReason
		leaving.Message = "remaining finalizers: " + strings.Join(cluster.Finalizers, ", ")
	}
	conditions.Set(stored, leaving)
	if !remains.WorksGone {
		return
	}
	conditions.Remove(stored, clusterv1alpha1.ClusterConditionAnswering)
	conditions.Set(stored, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterReasonLeaving,
		Message:            "the cluster was deleted, and its Works are gone",
		ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// held says which objects of a kind remain and what they wait for. It has no number,
// which would change with each of many objects that go.
func held(kind string, names []string, named bool, wait string) string {
	if !named || len(names) == 0 {
		return fmt.Sprintf("remaining %s: %s", kind, wait)
	}
	more := ""
	if len(names) > namedHolders {
		more = " and others"
	}
	return fmt.Sprintf("remaining %s: %s%s: %s", kind, strings.Join(names[:min(len(names), namedHolders)], ", "), more, wait)
}

// hasLeft reports whether the condition Ready says that the cluster was deleted. That
// is not undone by what is observed of the member.
func hasLeft(ready *metav1.Condition) bool {
	return ready != nil && ready.Reason == clusterv1alpha1.ClusterReasonLeaving
}

// Stays says why what was propagated to a Cluster stays there when it leaves now;
// empty if it is taken out.
func Stays(cluster *clusterv1alpha1.Cluster) string {
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil:
		return "nobody has looked at it yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Message
	default:
		return ""
	}
}
