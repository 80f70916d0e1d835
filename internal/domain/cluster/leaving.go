package cluster

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Leaving is what is known of a Cluster that was deleted and is still there.
type Leaving struct {
	Cluster *clusterv1alpha1.Cluster
	// SpaceStays tells that its execution namespace is not being deleted.
	SpaceStays bool
	// Works is how many Works are left in that namespace, Work names one of them.
	Works int
	Work  string
	// Bindings name some of those that are still scheduled to it.
	Bindings []string
}

// Holders says what keeps the Cluster, and what can be done about each. Nothing
// means that it is about to go.
func (l Leaving) Holders() []string {
	var holders []string
	ours := slices.Contains(l.Cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer)
	if ours && l.SpaceStays {
		holders = append(holders, "no controller has taken it up: see whether karmada-controller-manager is running and leads")
	}
	if l.Works > 0 {
		holders = append(holders, fmt.Sprintf("%s, such as %s: %s", counted(l.Works), l.Work, l.worksWait()))
	}
	if len(l.Bindings) > 0 {
		holders = append(holders, fmt.Sprintf("it is still in spec.clusters of %s: its scheduler takes it out, unless none serves it or scheduling is suspended",
			strings.Join(l.Bindings, ", ")))
	}
	for _, finalizer := range l.Cluster.Finalizers {
		if finalizer != clusterv1alpha1.ClusterControllerFinalizer {
			holders = append(holders, fmt.Sprintf("finalizer %s of the Cluster: who has set it takes it off", finalizer))
		}
	}
	return holders
}

func counted(works int) string {
	if works == 1 {
		return "1 Work is left"
	}
	return fmt.Sprintf("%d Works are left", works)
}

// worksWait is what Works wait for.
func (l Leaving) worksWait() string {
	ready := conditions.Get(l.Cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	answering := conditions.Get(l.Cluster.Status.Conditions, clusterv1alpha1.ClusterConditionAnswering)
	switch {
	case answering != nil && answering.Status != metav1.ConditionTrue:
		return "the cluster does not answer since a moment; they are let go once it is not Ready"
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return "their objects are being deleted in the cluster, see the events of the Works"
	case ready != nil:
		return fmt.Sprintf("the cluster is not Ready (%s); their objects stay in it", ready.Message)
	default:
		return "nobody has ever looked at the cluster"
	}
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
