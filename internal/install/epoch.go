package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// EpochReaderRoles returns the role and role binding that allow every authenticated client to read
// the ConfigMap of the epoch, because all agents must know whether the control plane was restored.
// The ConfigMap contains no secret data.
func EpochReaderRoles() []client.Object {
	const name = "karmada-epoch-reader"
	meta := metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: name, Labels: systemLabels()}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"},
				ResourceNames: []string{clusterv1alpha1.EpochName},
			}},
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
		},
	}
}
