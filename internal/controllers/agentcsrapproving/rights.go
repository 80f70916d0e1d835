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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/agent"
)

var workList = workv1alpha1.GroupVersion.WithKind("WorkList")

// record is who was made the agent of a cluster.
type record struct {
	cluster, clusterNamespace string
	request, requester        string
	// owner is the Cluster, nil before it exists.
	owner *clusterv1alpha1.Cluster
}

// recordOf is the record of a request that is about to be approved.
func recordOf(csr *certificatesv1.CertificateSigningRequest, request agent.Request, facts agent.Facts) record {
	made := record{
		cluster: request.Cluster, clusterNamespace: request.ClusterNamespace,
		request: string(csr.UID), requester: csr.Spec.Username,
	}
	if facts.Role != nil {
		// A renewal changes nothing about who the agent is.
		made.clusterNamespace = cmp.Or(facts.Role.Annotations[agent.ClusterNamespaceAnnotation], made.clusterNamespace)
		made.request = cmp.Or(facts.Role.Annotations[agent.RequestAnnotation], made.request)
		made.requester = cmp.Or(facts.Role.Annotations[agent.RequesterAnnotation], made.requester)
	}
	for i := range facts.Clusters {
		if facts.Clusters[i].Name == request.Cluster {
			made.owner = &facts.Clusters[i]
		}
	}
	return made
}

// managed tells whether the object is kept here.
func managed(object client.Object, cluster string) bool {
	return object.GetLabels()[agent.ManagedLabel] == cluster
}

// grant gives an agent its namespaces and rights, where they are missing or not as
// they should be. It asks to wait while something of an earlier agent is about to go.
func (r *reconciler) grant(ctx context.Context, of record) (wait bool, err error) {
	for _, name := range []string{of.clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster, agent.ExecutionNamespace(of.cluster)} {
		if wait, err := r.ensureNamespace(ctx, name, of); err != nil || wait {
			return wait, err
		}
	}
	var role *rbacv1.ClusterRole
	for _, want := range agent.Rights(of.cluster, of.clusterNamespace) {
		mark(want, of, role)
		stored, err := r.ensure(ctx, want, of)
		if err != nil || stored == nil {
			return stored == nil, err
		}
		if found, ok := stored.(*rbacv1.ClusterRole); ok {
			role = found
			if err := r.keepRecord(ctx, role, of); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// mark says whose the object is: the ClusterRole belongs to the Cluster, everything
// else to the ClusterRole.
func mark(want agent.Object, of record, role *rbacv1.ClusterRole) {
	labels := maps.Clone(want.GetLabels())
	labels[agent.ManagedLabel] = of.cluster
	want.SetLabels(labels)
	want.SetAnnotations(map[string]string{agent.ClusterNamespaceAnnotation: of.clusterNamespace})
	switch {
	case role != nil:
		want.SetOwnerReferences([]metav1.OwnerReference{reference(role, rbacv1.SchemeGroupVersion.String(), "ClusterRole")})
		return
	case of.owner != nil:
		want.SetOwnerReferences([]metav1.OwnerReference{reference(of.owner, clusterv1alpha1.GroupVersion.String(), clusterv1alpha1.ResourceKindCluster)})
	}
	want.SetAnnotations(map[string]string{
		agent.ClusterNamespaceAnnotation: of.clusterNamespace, agent.RequestAnnotation: of.request, agent.RequesterAnnotation: of.requester,
	})
}

func reference(owner client.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}

func (r *reconciler) ensureNamespace(ctx context.Context, name string, of record) (wait bool, err error) {
	stored := &corev1.Namespace{}
	exists, err := r.read(ctx, client.ObjectKey{Name: name}, stored)
	if err != nil || exists {
		return stored.DeletionTimestamp != nil, err
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
	}}
	if name == agent.ExecutionNamespace(of.cluster) {
		made.Annotations = map[string]string{workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired}
		if of.owner == nil {
			made.Annotations[agent.RequestAnnotation] = of.request
		}
	}
	if err := r.karmada.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating namespace %q of the agent of cluster %q: %w", name, of.cluster, err)
	}
	return false, nil
}

// ensure makes the object be as wanted and returns what is stored, nil while an
// earlier one is about to go. One that somebody else keeps gets the record of who
// the agent is and nothing else.
func (r *reconciler) ensure(ctx context.Context, want agent.Object, of record) (client.Object, error) {
	stored := empty(want)
	exists, err := r.read(ctx, client.ObjectKeyFromObject(want), stored)
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := r.karmada.Create(ctx, want); err != nil {
			return nil, fmt.Errorf("creating %T %q of the agent of cluster %q: %w", want, want.GetName(), of.cluster, err)
		}
		return want, nil
	}
	// Somebody else was made the agent since the decision.
	if other := stored.GetAnnotations()[agent.RequestAnnotation]; stored.GetDeletionTimestamp() != nil || other != "" && other != of.request {
		return nil, nil
	}
	fitting := stored.DeepCopyObject().(client.Object)
	if managed(stored, of.cluster) {
		fit(fitting, want)
	} else if stored.GetNamespace() == "" {
		addRecord(fitting, of)
	}
	if _, err := patch.Object(ctx, r.karmada, stored, fitting); err != nil {
		return nil, err
	}
	return fitting, nil
}

// empty is an object of the same kind that holds nothing.
func empty(like agent.Object) client.Object {
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

// fit changes what is stored into what is wanted.
func fit(stored client.Object, want agent.Object) {
	labels, annotations := maps.Clone(stored.GetLabels()), maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	maps.Copy(annotations, want.GetAnnotations())
	stored.SetLabels(labels)
	stored.SetAnnotations(annotations)
	if len(want.GetOwnerReferences()) > 0 {
		stored.SetOwnerReferences(want.GetOwnerReferences())
	}
	switch stored := stored.(type) {
	case *rbacv1.ClusterRole:
		stored.Rules = want.(*rbacv1.ClusterRole).Rules
	case *rbacv1.ClusterRoleBinding:
		stored.Subjects = want.(*rbacv1.ClusterRoleBinding).Subjects
	case *rbacv1.Role:
		stored.Rules = want.(*rbacv1.Role).Rules
	case *rbacv1.RoleBinding:
		stored.Subjects = want.(*rbacv1.RoleBinding).Subjects
	}
}

// addRecord says in the ClusterRole that somebody else made who the agent is.
func addRecord(stored client.Object, of record) {
	if _, ok := stored.(*rbacv1.ClusterRole); !ok {
		return
	}
	annotations := maps.Clone(stored.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[agent.RequestAnnotation], annotations[agent.RequesterAnnotation] = of.request, of.requester
	stored.SetAnnotations(annotations)
}
