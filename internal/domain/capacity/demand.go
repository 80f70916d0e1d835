package capacity

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Demand describes the workload for which the capacity of clusters is estimated. Neither a Demand
// nor the values to which it refers may be modified.
type Demand struct {
	// Workload is the template. Its namespace is also the namespace of the Pods in a member.
	Workload workv1alpha2.ObjectReference
	// Requirements are the requirements of one replica. Nil means that a replica needs only one
	// Pod.
	Requirements *workv1alpha2.ReplicaRequirements
	// Components are the components of one set. If there are components, the estimate is a number
	// of whole sets and Requirements are not used. Otherwise the estimate is a number of replicas.
	Components []workv1alpha2.Component
	// Assumed are the workloads that are scheduled to clusters but may not be visible there yet, by
	// the names of the clusters. Their resources are not available to this demand.
	Assumed map[string][]AssumedWorkload
}

// CountsSets reports whether an estimate counts sets of components. Otherwise an estimate counts
// replicas.
func (d *Demand) CountsSets() bool { return len(d.Components) > 0 }

// Counter returns a function that returns how many sets or replicas of the demand fit into a cluster
// in addition to the assumed workloads, according to the status of the Cluster. If models is true,
// the grades of nodes that a cluster reports are used. The requirements are converted only once for
// all clusters.
func (d *Demand) Counter(models bool) func(*clusterv1alpha1.Cluster) int32 {
	if d.CountsSets() {
		return func(cluster *clusterv1alpha1.Cluster) int32 {
			return newRoom(cluster, models, d.Assumed[cluster.Name]).availableSets(d.Components)
		}
	}
	request := newReplicaRequest(d.Requirements)
	return func(cluster *clusterv1alpha1.Cluster) int32 {
		return newRoom(cluster, models, d.Assumed[cluster.Name]).availableReplicas(&request)
	}
}
