package v1alpha1

// MemberRoleAnnotation names the ClusterRole of the member that limits what Karmada may
// do there. join --member-role sets it; messages about missing permissions refer to it.
const MemberRoleAnnotation = "cluster.karmada.io/member-role"

// ControlPlaneAnnotation on an object in a member names the control planes whose accounts need
// the object: the UIDs of their Namespaces kube-system, sorted and separated by commas. A control
// plane deletes the object only if the annotation names no other control plane. Objects of earlier
// versions and of upstream have no such annotation.
const ControlPlaneAnnotation = "cluster.karmada.io/control-plane"

// DeclaredDeadAnnotation on a Cluster, with the value DeclaredDeadValue, declares that the
// cluster has failed permanently and no workload runs there any more. An administrator sets
// it. Evictions with purge mode Directly then do not wait for the cluster. Remove the
// annotation before the cluster joins again.
const DeclaredDeadAnnotation = "cluster.karmada.io/declared-dead"

// DeclaredDeadValue is the value of DeclaredDeadAnnotation.
const DeclaredDeadValue = "true"

// DeclaredDead reports whether an administrator has declared the cluster dead.
func (c *Cluster) DeclaredDead() bool {
	return c.Annotations[DeclaredDeadAnnotation] == DeclaredDeadValue
}
