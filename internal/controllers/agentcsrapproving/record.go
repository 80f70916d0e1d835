package agentcsrapproving

import (
	"cmp"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/agent"
)

// readRecord returns the record of the agent of a Cluster: from its ClusterRole, or if that does
// not exist, from the copy in the execution namespace. The garbage collector may delete all
// other objects with the ClusterRole at any time. It returns nil if another creator manages the
// roles, and if the rights belonged to an earlier Cluster of the same name.
func (r *reconciler) readRecord(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*agentRecord, error) {
	role := &rbacv1.ClusterRole{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.RoleName(cluster.Name)}, role)
	if err != nil || exists && (!isManaged(role, cluster.Name) || belongsToEarlierCluster(role, cluster)) {
		return nil, err
	}
	executionNamespace := &corev1.Namespace{}
	if _, err := r.readLive(ctx, client.ObjectKey{Name: agent.ExecutionNamespace(cluster.Name)}, executionNamespace); err != nil {
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
		request:          cmp.Or(role.Annotations[agent.RequestAnnotation], stored.request),
		requester:        cmp.Or(role.Annotations[agent.RequesterAnnotation], stored.requester),
		clusterNamespace: cmp.Or(role.Annotations[agent.ClusterNamespaceAnnotation], stored.clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster),
	}, nil
}

// recordFromNamespace returns the record in the annotations of an execution namespace, nil if
// there is none or it names an earlier Cluster of the same name.
func recordFromNamespace(namespace *corev1.Namespace, cluster *clusterv1alpha1.Cluster) *agentRecord {
	clusterUID := namespace.Annotations[agent.RecordClusterAnnotation]
	if clusterUID == "" || clusterUID != string(cluster.UID) {
		return nil
	}
	return &agentRecord{
		cluster: cluster.Name, owner: cluster,
		request:          namespace.Annotations[agent.RecordRequestAnnotation],
		requester:        namespace.Annotations[agent.RecordRequesterAnnotation],
		clusterNamespace: cmp.Or(namespace.Annotations[agent.ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster),
	}
}

// belongsToEarlierCluster reports whether the role belongs to an earlier Cluster of the same
// name. The garbage collector deletes such a role.
func belongsToEarlierCluster(role *rbacv1.ClusterRole, cluster *clusterv1alpha1.Cluster) bool {
	for _, owner := range role.OwnerReferences {
		if owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.UID != cluster.UID {
			return true
		}
	}
	return false
}

// storeRecord copies the record to the execution namespace of an existing Cluster. Before the
// Cluster exists, an agent may release its name by deleting its ClusterRole.
func (r *reconciler) storeRecord(ctx context.Context, role *rbacv1.ClusterRole, record agentRecord) error {
	if record.owner == nil || !isManaged(role, record.cluster) {
		return nil
	}
	return r.annotateNamespace(ctx, record.cluster, map[string]string{
		agent.RecordClusterAnnotation: string(record.owner.UID), agent.RecordRequestAnnotation: record.request,
		agent.RecordRequesterAnnotation: record.requester, agent.ClusterNamespaceAnnotation: record.clusterNamespace,
	})
}

// deleteRecord removes the record, so that deleted rights are not restored.
func (r *reconciler) deleteRecord(ctx context.Context, cluster string) error {
	return r.annotateNamespace(ctx, cluster, nil)
}

// annotateNamespace replaces the record in the annotations of the execution namespace, if it
// exists.
func (r *reconciler) annotateNamespace(ctx context.Context, cluster string, record map[string]string) error {
	stored := &corev1.Namespace{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: agent.ExecutionNamespace(cluster)}, stored)
	if err != nil || !exists {
		return err
	}
	desired := stored.DeepCopy()
	for _, key := range []string{agent.RecordClusterAnnotation, agent.RecordRequestAnnotation, agent.RecordRequesterAnnotation, agent.ClusterNamespaceAnnotation} {
		delete(desired.Annotations, key)
	}
	if desired.Annotations == nil {
		desired.Annotations = map[string]string{}
	}
	maps.Copy(desired.Annotations, record)
	_, err = patch.Object(ctx, r.karmada, stored, desired)
	return err
}
