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

// recorded is the record of who the agent of a Cluster is: the one that its
// ClusterRole holds, or if that is gone the copy in the execution namespace. All else
// that is granted goes with the ClusterRole, by the garbage collector, at any moment.
// It is nil for an agent whose roles somebody else keeps, and for one whose rights
// were not for this Cluster but for an earlier one of its name.
func (r *reconciler) recorded(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*record, error) {
	role := &rbacv1.ClusterRole{}
	exists, err := r.read(ctx, client.ObjectKey{Name: agent.RoleName(cluster.Name)}, role)
	if err != nil || exists && (!managed(role, cluster.Name) || ofAnother(role, cluster)) {
		return nil, err
	}
	space := &corev1.Namespace{}
	if _, err := r.read(ctx, client.ObjectKey{Name: agent.ExecutionNamespace(cluster.Name)}, space); err != nil {
		return nil, err
	}
	kept := copied(space, cluster)
	if !exists {
		return kept, nil
	}
	if kept == nil {
		kept = &record{}
	}
	return &record{
		cluster: cluster.Name, owner: cluster,
		request:          cmp.Or(role.Annotations[agent.RequestAnnotation], kept.request),
		requester:        cmp.Or(role.Annotations[agent.RequesterAnnotation], kept.requester),
		clusterNamespace: cmp.Or(role.Annotations[agent.ClusterNamespaceAnnotation], kept.clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster),
	}, nil
}

// copied is the record that an execution namespace holds of the agent of the Cluster,
// nil if there is none or it is about an earlier Cluster of the name.
func copied(space *corev1.Namespace, cluster *clusterv1alpha1.Cluster) *record {
	of := space.Annotations[agent.RecordClusterAnnotation]
	if of == "" || of != string(cluster.UID) {
		return nil
	}
	return &record{
		cluster: cluster.Name, owner: cluster,
		request:          space.Annotations[agent.RecordRequestAnnotation],
		requester:        space.Annotations[agent.RecordRequesterAnnotation],
		clusterNamespace: cmp.Or(space.Annotations[agent.ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster),
	}
}

// ofAnother tells whether the role belongs to an earlier Cluster of the name, whose
// end it is about to share.
func ofAnother(role *rbacv1.ClusterRole, cluster *clusterv1alpha1.Cluster) bool {
	for _, owner := range role.OwnerReferences {
		if owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.UID != cluster.UID {
			return true
		}
	}
	return false
}

// keepRecord copies the record into the execution namespace of a Cluster that exists.
// Before that an agent may give its name back, by deleting its ClusterRole.
func (r *reconciler) keepRecord(ctx context.Context, role *rbacv1.ClusterRole, of record) error {
	if of.owner == nil || !managed(role, of.cluster) {
		return nil
	}
	return r.annotateSpace(ctx, of.cluster, map[string]string{
		agent.RecordClusterAnnotation: string(of.owner.UID), agent.RecordRequestAnnotation: of.request,
		agent.RecordRequesterAnnotation: of.requester, agent.ClusterNamespaceAnnotation: of.clusterNamespace,
	})
}

// dropRecord makes sure that rights which are gone stay away.
func (r *reconciler) dropRecord(ctx context.Context, cluster string) error {
	return r.annotateSpace(ctx, cluster, nil)
}

// annotateSpace makes the record in the execution namespace be the given one. There is
// nothing to do if there is no such namespace.
func (r *reconciler) annotateSpace(ctx context.Context, cluster string, record map[string]string) error {
	stored := &corev1.Namespace{}
	exists, err := r.read(ctx, client.ObjectKey{Name: agent.ExecutionNamespace(cluster)}, stored)
	if err != nil || !exists {
		return err
	}
	wanted := stored.DeepCopy()
	for _, key := range []string{agent.RecordClusterAnnotation, agent.RecordRequestAnnotation, agent.RecordRequesterAnnotation, agent.ClusterNamespaceAnnotation} {
		delete(wanted.Annotations, key)
	}
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	maps.Copy(wanted.Annotations, record)
	_, err = patch.Object(ctx, r.karmada, stored, wanted)
	return err
}
