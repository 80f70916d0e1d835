package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	multiclusterv1alpha1 "karmada.io/karmada/api/multicluster/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// systemLabels are the labels of the objects of an installation.
func systemLabels() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

// Namespaces returns the namespaces of the components.
func Namespaces() []client.Object {
	namespace := func(name string) client.Object {
		return &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		}
	}
	return []client.Object{namespace(clusterv1alpha1.NamespaceKarmadaSystem), namespace(clusterv1alpha1.NamespaceKarmadaCluster)}
}

// Roles returns the roles for users.
func Roles() []client.Object {
	proxyAdmin := rbacv1.PolicyRule{APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, Verbs: []string{"*"}}
	return []client.Object{
		aggregatedRole("karmada-view", "view", append(userResourceRules(readVerbs()), componentResourceRules(readVerbs()))...),
		aggregatedRole("karmada-edit", "edit", userResourceRules(writeVerbs())...),
		// The role is not aggregated, because a user who writes bindings can select clusters
		// without a policy.
		newClusterRole("karmada-binding-edit", componentResourceRules(append(readVerbs(), writeVerbs()...))),
		newClusterRole("cluster-proxy-admin", proxyAdmin),
		newClusterRoleBinding("cluster-proxy-admin", "cluster-proxy-admin", rbacv1.UserKind, "system:admin"),
	}
}

func readVerbs() []string { return []string{"get", "list", "watch"} }

func writeVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

// userResourceRules returns the rules for the resources that users of a namespace write.
func userResourceRules(verbs []string) []rbacv1.PolicyRule {
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule(autoscalingv1alpha1.GroupName, "cronfederatedhpas", "cronfederatedhpas/status", "federatedhpas", "federatedhpas/status"),
		rule(multiclusterv1alpha1.GroupName, "serviceexports", "serviceexports/status", "serviceimports", "serviceimports/status"),
		rule(networkingv1alpha1.GroupName, "multiclusteringresses", "multiclusteringresses/status", "multiclusterservices", "multiclusterservices/status"),
		rule(policyv1alpha1.GroupName, "overridepolicies", "propagationpolicies"),
	}
}

// componentResourceRules returns the rules for the resources that components create from the
// objects of users. Users of a namespace may read these resources.
func componentResourceRules(verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{workv1alpha1.GroupName},
		Resources: []string{"resourcebindings", "resourcebindings/status", "works", "works/status"}, Verbs: verbs,
	}
}

// aggregatedRole returns a role that is aggregated to one of the default roles of Kubernetes for
// users of a namespace. Rules that are aggregated to edit are also part of admin.
func aggregatedRole(name, aggregateTo string, rules ...rbacv1.PolicyRule) client.Object {
	r := newClusterRole(name, rules...)
	r.Labels["rbac.authorization.k8s.io/aggregate-to-"+aggregateTo] = "true"
	return r
}

func newClusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		Rules:      rules,
	}
}

func newClusterRoleBinding(name, roleName, subjectKind, subject string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: subjectKind, Name: subject}},
	}
}
