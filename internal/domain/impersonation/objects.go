package impersonation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ImpersonatorName is the name of three objects in members: the ClusterRole, its ClusterRoleBinding
// and the bound ServiceAccount.
const ImpersonatorName = "karmada-impersonator"

// NewRole returns the ClusterRole of a member that allows the impersonator to impersonate subjects.
// Without subjects the ClusterRole has no rules.
func NewRole(subjects Subjects) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: objectMeta()}
	for _, each := range []struct {
		resource string
		names    []string
	}{
		{"users", subjects.Users}, {"serviceaccounts", subjects.ServiceAccounts}, {"groups", subjects.Groups},
	} {
		// A list without names gets no rule, because a rule without resource names would allow all
		// subjects.
		if len(each.names) == 0 {
			continue
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{each.resource}, ResourceNames: each.names,
		})
	}
	return role
}

// NewBinding returns the ClusterRoleBinding that binds the ClusterRole of NewRole to the
// ServiceAccount of the impersonator in the given namespace of the member.
func NewBinding(namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: objectMeta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ImpersonatorName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: ImpersonatorName}},
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: ImpersonatorName, Labels: map[string]string{
		clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue,
	}}
}
