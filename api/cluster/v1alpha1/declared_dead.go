package v1alpha1

// MemberRoleAnnotation names the ClusterRole of the member that limits what Karmada may
// do there. join --member-role sets it; messages about missing rights refer to it.
const MemberRoleAnnotation = "cluster.karmada.io/member-role"

// DeclaredDeadAnnotation on a Cluster, with the value DeclaredDeadValue, is an
// administrator's word that the cluster will not come back as it was: nothing that
// ran there runs any more. Evictions of purge mode Directly do not wait for it.
// Take it off before the cluster is let back.
const DeclaredDeadAnnotation = "cluster.karmada.io/declared-dead"

// DeclaredDeadValue is the value of DeclaredDeadAnnotation.
const DeclaredDeadValue = "true"

// DeclaredDead tells whether an administrator has given the cluster up.
func (c *Cluster) DeclaredDead() bool {
	return c.Annotations[DeclaredDeadAnnotation] == DeclaredDeadValue
}
