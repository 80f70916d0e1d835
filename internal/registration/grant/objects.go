package grant

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
)

// Names of what a member holds for the control plane. Other releases use the same
// ones, so that each can unjoin what another one has joined.
const (
	// Impersonator is the service account that acts for the callers of the cluster proxy.
	Impersonator = "karmada-impersonator"
	// ImpersonatorSuffix follows the name of the cluster in the Secret of the control
	// plane with the token of that account.
	ImpersonatorSuffix = "-impersonator"

	accountPrefix = "karmada-"
	rolePrefix    = "karmada-controller-manager:"
)

// AccountName is the service account in the member that the control plane acts as.
func AccountName(cluster string) string { return accountPrefix + cluster }

// roleName is the ClusterRole of that account, and its ClusterRoleBinding.
func roleName(cluster string) string { return rolePrefix + AccountName(cluster) }

// TokenRequest asks the member for a token of the account that does not expire.
func TokenRequest(account *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name, Labels: registration.SystemLabels(),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// Role allows everything: what will be propagated is not known beforehand.
func Role(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: registration.SystemLabels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{"get"}},
		},
	}
}

// BaseRules are what the control plane needs in every member: to prove which cluster it
// is, and to report its health and its room.
func BaseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
		{NonResourceURLs: []string{"/readyz", "/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}},
	}
}

// MemberRoleBinding gives a ClusterRole of the member to the account of the control
// plane.
func MemberRoleBinding(cluster, namespace, role string) *rbacv1.ClusterRoleBinding {
	binding := RoleBinding(cluster, namespace)
	binding.Name += ":member-role"
	binding.RoleRef.Name = role
	return binding
}

// RoleBinding gives the role to the account of the control plane.
func RoleBinding(cluster, namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: registration.SystemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName(cluster)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: AccountName(cluster)}},
	}
}

// Access is what the control plane needs to know to reach a member.
type Access struct {
	Token, ImpersonatorToken, CA []byte
}

// Secrets are the control plane's copies of the tokens.
func (a Access) Secrets(cluster, namespace string) (credentials, impersonation *corev1.Secret) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: registration.SystemLabels()}, Data: data}
	}
	credentials = secret(cluster, map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  a.Token,
		clusterv1alpha1.SecretCADataKey: a.CA,
	})
	impersonation = secret(cluster+ImpersonatorSuffix, map[string][]byte{clusterv1alpha1.SecretTokenKey: a.ImpersonatorToken})
	return credentials, impersonation
}
