package agentcsrapproving

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop/patch"
)

var workListKind = workv1alpha1.GroupVersion.WithKind("WorkList")

// agentRecord records which request and which requester became the cluster's agent.
type agentRecord struct {
	cluster, clusterNamespace string
	request, requester        string
	// scope is the value of RegistrationScopeAnnotation, or empty.
	scope string
	// owner is the agent's Cluster. It is nil until the Cluster exists.
	owner *clusterv1alpha1.Cluster
}

// newAgentRecord returns the record for a request that is being approved.
func newAgentRecord(csr *certificatesv1.CertificateSigningRequest, request agent.Request, facts agent.RequestFacts) agentRecord {
	created := agentRecord{
		cluster: request.Cluster, clusterNamespace: request.ClusterNamespace,
		request: string(csr.UID), requester: csr.Spec.Username,
	}
	if facts.Scope != nil {
		created.scope = facts.Scope.OfAgent().Encode()
	}
	if facts.Role != nil {
		created.scope = cmp.Or(created.scope, facts.Role.Annotations[clusterv1alpha1.RegistrationScopeAnnotation])
		// Keep the recorded values, because a renewal does not change the agent's identity.
		created.clusterNamespace = cmp.Or(facts.Role.Annotations[clusterv1alpha1.ClusterNamespaceAnnotation], created.clusterNamespace)
		created.request = cmp.Or(facts.Role.Annotations[clusterv1alpha1.AgentRequestAnnotation], created.request)
		created.requester = cmp.Or(facts.Role.Annotations[clusterv1alpha1.AgentRequesterAnnotation], created.requester)
	}
	for i := range facts.Clusters {
		if facts.Clusters[i].Name == request.Cluster {
			created.owner = &facts.Clusters[i]
		}
	}
	return created
}

// isManaged reports whether this controller manages the object for the cluster.
func isManaged(object client.Object, cluster string) bool {
	return object.GetLabels()[clusterv1alpha1.AgentLabel] == cluster
}

// grantPermissions creates or repairs an agent's namespaces and permissions. wait is true while an
// earlier agent's object is being deleted.
func (r *reconciler) grantPermissions(ctx context.Context, record agentRecord) (wait bool, err error) {
	for _, name := range []string{
		record.clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster, clusterv1alpha1.NamespaceKarmadaSystem,
		work.ExecutionNamespace(record.cluster),
	} {
		if wait, err := r.ensureNamespace(ctx, name, record); err != nil || wait {
			return wait, err
		}
	}
	var role *rbacv1.ClusterRole
	for _, want := range agent.RBACObjects(record.cluster, record.clusterNamespace) {
		setOwnership(want, record, role)
		stored, err := r.ensureObject(ctx, want, record)
		if err != nil || stored == nil {
			return stored == nil, err
		}
		if clusterRole, ok := stored.(*rbacv1.ClusterRole); ok {
			role = clusterRole
			if err := r.storeRecord(ctx, role, record); err != nil {
				return false, err
			}
			if taken, err := r.releaseTakenName(ctx, role, record); err != nil || taken {
				return taken, err
			}
		}
	}
	return false, nil
}

// releaseTakenName deletes the ClusterRole of a new agent, which has no role binding yet, if a Cluster
// with its name was created since the decision. It reports whether it deleted the ClusterRole. A
// cluster that joins in push mode reserves its name with the same ClusterRole until its Cluster exists.
func (r *reconciler) releaseTakenName(ctx context.Context, role *rbacv1.ClusterRole, record agentRecord) (taken bool, err error) {
	if record.owner != nil || !isManaged(role, record.cluster) {
		return false, nil
	}
	clusters, err := r.readClusters(ctx, record.cluster)
	if err != nil || len(clusters) == 0 {
		return false, err
	}
	if err := r.karmada.Delete(ctx, role, client.Preconditions{UID: &role.UID}); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("releasing the name of cluster %q: %w", record.cluster, err)
	}
	return true, nil
}

// grantRemovalPermissions grants a Cluster's agent the permissions to delete objects if another client
// manages the agent's other permissions, for example because a control plane of another release
// registered the agent. The Cluster owns the roles.
func (r *reconciler) grantRemovalPermissions(ctx context.Context, cluster *clusterv1alpha1.Cluster) (wait bool, err error) {
	record := agentRecord{cluster: cluster.Name, owner: cluster}
	for _, name := range []string{clusterv1alpha1.NamespaceKarmadaSystem, work.ExecutionNamespace(cluster.Name)} {
		if wait, err := r.ensureNamespace(ctx, name, record); err != nil || wait {
			return wait, err
		}
	}
	for _, want := range agent.RemovalObjects(cluster.Name) {
		labels := maps.Clone(want.GetLabels())
		labels[clusterv1alpha1.AgentLabel] = cluster.Name
		want.SetLabels(labels)
		want.SetOwnerReferences([]metav1.OwnerReference{ownerReference(cluster, clusterv1alpha1.GroupVersion.String(),
			clusterv1alpha1.ResourceKindCluster)})
		stored, err := r.ensureObject(ctx, want, record)
		if err != nil || stored == nil {
			return stored == nil, err
		}
	}
	return false, nil
}

// setOwnership sets an object's labels, annotations and owner. The Cluster owns the ClusterRole, and
// the ClusterRole owns all other objects.
func setOwnership(desired agent.Object, record agentRecord, role *rbacv1.ClusterRole) {
	labels := maps.Clone(desired.GetLabels())
	labels[clusterv1alpha1.AgentLabel] = record.cluster
	desired.SetLabels(labels)
	desired.SetAnnotations(map[string]string{clusterv1alpha1.ClusterNamespaceAnnotation: record.clusterNamespace})
	switch {
	case role != nil:
		desired.SetOwnerReferences([]metav1.OwnerReference{ownerReference(role, rbacv1.SchemeGroupVersion.String(), "ClusterRole")})
		return
	case record.owner != nil:
		desired.SetOwnerReferences([]metav1.OwnerReference{ownerReference(record.owner, clusterv1alpha1.GroupVersion.String(),
			clusterv1alpha1.ResourceKindCluster)})
	}
	desired.SetAnnotations(withScope(map[string]string{
		clusterv1alpha1.ClusterNamespaceAnnotation: record.clusterNamespace, clusterv1alpha1.AgentRequestAnnotation: record.request,
		clusterv1alpha1.AgentRequesterAnnotation: record.requester,
	}, record.scope))
}

// withScope adds the scope to annotations unless it is empty.
func withScope(annotations map[string]string, scope string) map[string]string {
	if scope != "" {
		annotations[clusterv1alpha1.RegistrationScopeAnnotation] = scope
	}
	return annotations
}

func ownerReference(owner client.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}

func (r *reconciler) ensureNamespace(ctx context.Context, name string, record agentRecord) (wait bool, err error) {
	stored := &corev1.Namespace{}
	exists, err := r.readLive(ctx, client.ObjectKey{Name: name}, stored)
	if err != nil || exists {
		return stored.DeletionTimestamp != nil, err
	}
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
	}}
	if name == work.ExecutionNamespace(record.cluster) {
		created.Annotations = map[string]string{workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired}
		if record.owner == nil {
			created.Annotations[clusterv1alpha1.AgentRequestAnnotation] = record.request
		}
	}
	if err := r.karmada.Create(ctx, created); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating namespace %q of the agent of cluster %q: %w", name, record.cluster, err)
	}
	return false, nil
}

// ensureObject creates or updates the object and returns the stored object. It returns nil if the pass
// must wait, because an earlier object of the same name is being deleted, or because another requester
// became the agent. If another client created the object, ensureObject changes at most those
// annotations of a ClusterRole that identify the agent.
func (r *reconciler) ensureObject(ctx context.Context, desired agent.Object, record agentRecord) (client.Object, error) {
	stored := newEmptyLike(desired)
	exists, err := r.readLive(ctx, client.ObjectKeyFromObject(desired), stored)
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := r.karmada.Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("creating %T %q of the agent of cluster %q: %w", desired, desired.GetName(), record.cluster, err)
		}
		return desired, nil
	}
	// Wait, because the object is being deleted, or because another requester became the agent after
	// the decision.
	if other := stored.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation]; stored.GetDeletionTimestamp() != nil ||
		other != "" && other != record.request {
		return nil, nil
	}
	updated := stored.DeepCopyObject().(client.Object)
	if isManaged(stored, record.cluster) {
		copyDesired(updated, desired)
	} else if stored.GetNamespace() == "" {
		annotateRequester(updated, record)
	}
	if _, err := patch.Object(ctx, r.karmada, stored, updated); err != nil {
		return nil, err
	}
	return updated, nil
}

// newEmptyLike returns an empty object of the same type as like.
func newEmptyLike(like agent.Object) client.Object {
	switch like.(type) {
	case *rbacv1.ClusterRole:
		return &rbacv1.ClusterRole{}
	case *rbacv1.ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{}
	case *rbacv1.Role:
		return &rbacv1.Role{}
	default:
		return &rbacv1.RoleBinding{}
	}
}

// copyDesired copies the desired metadata and content to the stored object.
func copyDesired(stored client.Object, desired agent.Object) {
	labels, annotations := maps.Clone(stored.GetLabels()), maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	maps.Copy(annotations, desired.GetAnnotations())
	stored.SetLabels(labels)
	stored.SetAnnotations(annotations)
	if len(desired.GetOwnerReferences()) > 0 {
		stored.SetOwnerReferences(desired.GetOwnerReferences())
	}
	switch stored := stored.(type) {
	case *rbacv1.ClusterRole:
		stored.Rules = desired.(*rbacv1.ClusterRole).Rules
	case *rbacv1.ClusterRoleBinding:
		stored.Subjects = desired.(*rbacv1.ClusterRoleBinding).Subjects
	case *rbacv1.Role:
		stored.Rules = desired.(*rbacv1.Role).Rules
	case *rbacv1.RoleBinding:
		stored.Subjects = desired.(*rbacv1.RoleBinding).Subjects
	}
}

// annotateRequester adds the agent's request and requester to the annotations of a ClusterRole that
// another client created.
func annotateRequester(stored client.Object, record agentRecord) {
	if _, ok := stored.(*rbacv1.ClusterRole); !ok {
		return
	}
	annotations := maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.AgentRequestAnnotation], annotations[clusterv1alpha1.AgentRequesterAnnotation] = record.request,
		record.requester
	stored.SetAnnotations(withScope(annotations, record.scope))
}
