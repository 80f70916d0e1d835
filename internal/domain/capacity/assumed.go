package capacity

import workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"

// AssumedWorkload is a workload that is scheduled to a cluster, but whose Pods may not exist there
// yet. Estimators count its resources as used.
type AssumedWorkload struct {
	// Namespace is the namespace of the Pods.
	Namespace string
	// Components are all Pods of the workload in the cluster. Components[i].Replicas is the total
	// number of Pods of a component, because the workload is one set.
	Components []workv1alpha2.Component
}
