package agentcsrapproving

import (
	"cmp"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop/patch"
)

// readRecord returns the record of the Cluster's agent. It reads the record from the ClusterRole or, if
// the ClusterRole does not exist, from the copy in the execution namespace. The copy is needed because
// the garbage collector may delete the ClusterRole together with all other objects of the agent at any
// time. readRecord returns nil if another client manages the roles, or if the permissions belonged to
// an earlier Cluster of the same name.
func (r *reconciler) readRecord(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*agentRecord, error) {
	role := &rbacv1.ClusterRole{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.RoleName(cluster.Name)}, role)
	if err != nil || exists && (!isManaged(role, cluster.Name) || belongsToEarlierCluster(role, cluster)) {
		return nil, err
	}
	executionNamespace := &corev1.Namespace{}
	if _, err := r.readLive(ctx, client.ObjectKey{Name: work.ExecutionNamespace(cluster.Name)}, executionNamespace); err != nil {
		return nil, err
	}
	stored := recordFromNamespace(executionNamespace, cluster)
	if !exists {
		return stored, nil
	}
	if stored == nil {
		stored = &agentRecord{}
	}
	return &agentRecord{
		cluster: cluster.Name, owner: cluster,
		request:   cmp.Or(role.Annotations[clusterv1alpha1.AgentRequestAnnotation], stored.request),
		requester: cmp.Or(role.Annotations[clusterv1alpha1.AgentRequesterAnnotation], stored.requester),
		scope:     cmp.Or(role.Annotations[clusterv1alpha1.RegistrationScopeAnnotation], stored.scope),
		clusterNamespace: cmp.Or(role.Annotations[clusterv1alpha1.ClusterNamespaceAnnotation], stored.clusterNamespace,
			clusterv1alpha1.NamespaceKarmadaCluster),
	}, nil
}

// recordFromNamespace returns the record in an execution namespace's annotations. It returns nil if
// there is no record, or if the record belongs to an earlier Cluster of the same name.
func recordFromNamespace(namespace *corev1.Namespace, cluster *clusterv1alpha1.Cluster) *agentRecord {
	clusterUID := namespace.Annotations[clusterv1alpha1.AgentRecordClusterAnnotation]
	if clusterUID == "" || clusterUID != string(cluster.UID) {
		return nil
	}
	return &agentRecord{
		cluster: cluster.Name, owner: cluster,
		request:          namespace.Annotations[clusterv1alpha1.AgentRecordRequestAnnotation],
		requester:        namespace.Annotations[clusterv1alpha1.AgentRecordRequesterAnnotation],
		scope:            namespace.Annotations[clusterv1alpha1.RegistrationScopeAnnotation],
		clusterNamespace: cmp.Or(namespace.Annotations[clusterv1alpha1.ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster),
	}
}

// belongsToEarlierCluster reports whether the role belongs to an earlier Cluster of the same name. The
// garbage collector deletes such a role.
func belongsToEarlierCluster(role *rbacv1.ClusterRole, cluster *clusterv1alpha1.Cluster) bool {
	for _, owner := range role.OwnerReferences {
		if owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.UID != cluster.UID {
			return true
		}
	}
	return false
}

// storeRecord copies the record to an existing Cluster's execution namespace. It does nothing before
// the Cluster exists, because until then an agent may release its name by deleting its ClusterRole.
func (r *reconciler) storeRecord(ctx context.Context, role *rbacv1.ClusterRole, record agentRecord) error {
	if record.owner == nil || !isManaged(role, record.cluster) {
		return nil
	}
	return r.annotateNamespace(ctx, record.cluster, withScope(map[string]string{
		clusterv1alpha1.AgentRecordClusterAnnotation: string(record.owner.UID), clusterv1alpha1.AgentRecordRequestAnnotation: record.request,
		clusterv1alpha1.AgentRecordRequesterAnnotation: record.requester, clusterv1alpha1.ClusterNamespaceAnnotation: record.clusterNamespace,
	}, record.scope))
}

// annotateNamespace replaces the record in the execution namespace's annotations, if the namespace
// exists.
func (r *reconciler) annotateNamespace(ctx context.Context, cluster string, record map[string]string) error {
	stored := &corev1.Namespace{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: work.ExecutionNamespace(cluster)}, stored)
	if err != nil || !exists {
		return err
	}
	desired := stored.DeepCopy()
	for _, key := range []string{
		clusterv1alpha1.AgentRecordClusterAnnotation, clusterv1alpha1.AgentRecordRequestAnnotation,
		clusterv1alpha1.AgentRecordRequesterAnnotation,
		clusterv1alpha1.ClusterNamespaceAnnotation, clusterv1alpha1.RegistrationScopeAnnotation,
	} {
		delete(desired.Annotations, key)
	}
	if desired.Annotations == nil {
		desired.Annotations = map[string]string{}
	}
	maps.Copy(desired.Annotations, record)
	_, err = patch.Object(ctx, r.karmada, stored, desired)
	return err
}
