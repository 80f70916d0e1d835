package enroll

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
)

// Names of the control plane's objects in a member. They are the same in all releases, so that each release
// can unjoin a cluster that another release joined.
const (
	// ImpersonatorAccount is the service account that impersonates the cluster proxy's callers.
	ImpersonatorAccount = "karmada-impersonator"
	// ImpersonatorSuffix follows the cluster's name in the name of the control plane's Secret that contains
	// the impersonator account's token.
	ImpersonatorSuffix = "-impersonator"

	accountPrefix = "karmada-"
	rolePrefix    = "karmada-controller-manager:"
)

// AccountName returns the name of the member's service account for the control plane's own requests.
func AccountName(cluster string) string { return accountPrefix + cluster }

// roleName returns the name of the account's ClusterRole and ClusterRoleBinding.
func roleName(cluster string) string { return rolePrefix + AccountName(cluster) }

// NewTokenSecret returns a Secret to which the member writes a token for the account. The token does not
// expire.
func NewTokenSecret(account *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name, Labels: registration.SystemLabels(),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// NewClusterRole returns a ClusterRole that allows everything, because the propagated kinds are not known in
// advance.
func NewClusterRole(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: registration.SystemLabels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{"get"}},
		},
	}
}

// BaseRules returns the permissions that the control plane needs in every member to verify the cluster's
// identity, and to report its health and free capacity.
func BaseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem},
			Verbs: []string{"get"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
		{NonResourceURLs: []string{"/readyz", "/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}},
	}
}

// NewMemberRoleBinding returns a binding of the member's ClusterRole to the control plane's account.
func NewMemberRoleBinding(cluster, namespace, role string) *rbacv1.ClusterRoleBinding {
	binding := NewClusterRoleBinding(cluster, namespace)
	binding.Name += ":member-role"
	binding.RoleRef.Name = role
	return binding
}

// NewClusterRoleBinding returns a binding of the control plane's ClusterRole to its account.
func NewClusterRoleBinding(cluster, namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: registration.SystemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName(cluster)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: AccountName(cluster)}},
	}
}

// Credentials are the tokens and the CA bundle with which the control plane accesses a member.
type Credentials struct {
	Token, ImpersonatorToken, CA []byte
}

// Secrets returns the control plane's Secrets that contain the tokens.
func (c Credentials) Secrets(cluster, namespace string) (credentials, impersonation *corev1.Secret) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: registration.SystemLabels()}, Data: data}
	}
	credentials = secret(cluster, map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  c.Token,
		clusterv1alpha1.SecretCADataKey: c.CA,
	})
	impersonation = secret(cluster+ImpersonatorSuffix, map[string][]byte{clusterv1alpha1.SecretTokenKey: c.ImpersonatorToken})
	return credentials, impersonation
}
