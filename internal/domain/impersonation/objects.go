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
// Without subjects the ClusterRole has no rules. controlPlane is the ID of the control plane, or empty.
func NewRole(subjects Subjects, controlPlane string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: objectMeta(controlPlane)}
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
// ServiceAccount of the impersonator in the given namespace of the member. controlPlane is the ID of the
// control plane, or empty.
func NewBinding(namespace, controlPlane string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: objectMeta(controlPlane),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ImpersonatorName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: ImpersonatorName}},
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func objectMeta(controlPlane string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: ImpersonatorName, Labels: map[string]string{
		clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue,
	}}
	if controlPlane != "" {
		meta.Annotations = map[string]string{clusterv1alpha1.ControlPlaneAnnotation: controlPlane}
	}
	return meta
}

// IsSameControlPlane reports whether two objects of a member are the ClusterRole or ClusterRoleBinding of
// the same control plane, whose ID they name. A control plane has a member only once, so the later of two
// such objects replaces the other one, even if they are delivered for Clusters of different names.
func IsSameControlPlane(a, b metav1.Object) bool {
	return controlPlaneOf(a) != "" && controlPlaneOf(a) == controlPlaneOf(b)
}

// controlPlaneOf returns the ID of the control plane that an object of this package names. It is empty for
// other objects.
func controlPlaneOf(object metav1.Object) string {
	if object.GetName() != ImpersonatorName || object.GetNamespace() != "" ||
		object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return ""
	}
	return object.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation]
}
