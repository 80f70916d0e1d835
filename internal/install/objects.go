package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// systemLabels mark what an installation owns.
func systemLabels() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

// Namespaces are those that the components use.
func Namespaces() []client.Object {
	namespace := func(name string) client.Object {
		return &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		}
	}
	return []client.Object{namespace(clusterv1alpha1.NamespaceKarmadaSystem), namespace(clusterv1alpha1.NamespaceKarmadaCluster)}
}

// Roles are the roles that users need.
func Roles() []client.Object {
	proxyAdmin := rbacv1.PolicyRule{APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, Verbs: []string{"*"}}
	return []client.Object{
		userRole("karmada-view", "view", append(ownedByUsers(readVerbs()), ownedByComponents(readVerbs()))...),
		userRole("karmada-edit", "edit", ownedByUsers(writeVerbs())...),
		// Not aggregated: a user who writes bindings decides on clusters without any policy.
		role("karmada-binding-edit", ownedByComponents(append(readVerbs(), writeVerbs()...))),
		role("cluster-proxy-admin", proxyAdmin),
		bind("cluster-proxy-admin", "cluster-proxy-admin", rbacv1.UserKind, "system:admin"),
	}
}

func readVerbs() []string { return []string{"get", "list", "watch"} }

func writeVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

// ownedByUsers are the resources that users of a namespace write.
func ownedByUsers(verbs []string) []rbacv1.PolicyRule {
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("autoscaling.karmada.io", "cronfederatedhpas", "cronfederatedhpas/status", "federatedhpas", "federatedhpas/status"),
		rule("multicluster.x-k8s.io", "serviceexports", "serviceexports/status", "serviceimports", "serviceimports/status"),
		rule("networking.karmada.io", "multiclusteringresses", "multiclusteringresses/status", "multiclusterservices", "multiclusterservices/status"),
		rule("policy.karmada.io", "overridepolicies", "propagationpolicies"),
	}
}

// ownedByComponents are the resources that components make out of what users write.
// Users of a namespace read them.
func ownedByComponents(verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"work.karmada.io"},
		Resources: []string{"resourcebindings", "resourcebindings/status", "works", "works/status"}, Verbs: verbs,
	}
}

// userRole is a role that is added to one of the roles that Kubernetes gives to
// users of a namespace. What is added to edit is part of admin too.
func userRole(name, aggregateTo string, rules ...rbacv1.PolicyRule) client.Object {
	r := role(name, rules...)
	r.Labels["rbac.authorization.k8s.io/aggregate-to-"+aggregateTo] = "true"
	return r
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		Rules:      rules,
	}
}

func bind(name, roleName, subjectKind, subject string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: subjectKind, Name: subject}},
	}
}
