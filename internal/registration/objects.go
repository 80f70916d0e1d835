package registration

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Names of what a member holds for the control plane. Other releases use the same
// ones, so that each can unjoin what another one has joined.
const (
	impersonator       = "karmada-impersonator"
	accountPrefix      = "karmada-"
	rolePrefix         = "karmada-controller-manager:"
	impersonatorSuffix = "-impersonator"
)

// accountName is the service account in the member that the control plane acts as.
func accountName(cluster string) string { return accountPrefix + cluster }

// roleName is the ClusterRole of that account, and its ClusterRoleBinding.
func roleName(cluster string) string { return rolePrefix + accountName(cluster) }

func systemLabels() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()}}
}

func account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()}}
}

// tokenRequest asks the member for a token of the account that does not expire.
func tokenRequest(account *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name, Labels: systemLabels(),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// role allows everything: what will be propagated is not known beforehand.
func role(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: systemLabels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{"get"}},
		},
	}
}

func roleBinding(cluster, namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleName(cluster), Labels: systemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName(cluster)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: accountName(cluster)}},
	}
}

// access is what the control plane needs to know to reach a member.
type access struct {
	token, impersonatorToken, ca []byte
}

// secrets are the control plane's copies of the tokens.
func (a access) secrets(cluster, namespace string) (credentials, impersonation *corev1.Secret) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()}, Data: data}
	}
	credentials = secret(cluster, map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  a.token,
		clusterv1alpha1.SecretCADataKey: a.ca,
	})
	impersonation = secret(cluster+impersonatorSuffix, map[string][]byte{clusterv1alpha1.SecretTokenKey: a.impersonatorToken})
	return credentials, impersonation
}

// cluster is the Cluster to be created for the member with the given identity.
func (j Join) cluster(id string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name},
		Spec: clusterv1alpha1.ClusterSpec{
			ID:                          id,
			SyncMode:                    clusterv1alpha1.Push,
			APIEndpoint:                 endpoint(j.Member),
			SecretRef:                   &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace, Name: j.Name},
			ImpersonatorSecretRef:       &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace, Name: j.Name + impersonatorSuffix},
			InsecureSkipTLSVerification: j.Member.Insecure,
			ProxyURL:                    proxyOf(j.Member),
			Provider:                    j.Provider,
			Region:                      j.Region,
			Zones:                       j.Zones,
		},
	}
}

// endpoint is the URL of the API server. A kubeconfig may leave out the scheme.
func endpoint(config *rest.Config) string {
	if strings.Contains(config.Host, "://") {
		return config.Host
	}
	return "https://" + config.Host
}

// proxyOf is the proxy that the configuration itself names; one that comes from
// the environment of this process says nothing about the control plane.
func proxyOf(config *rest.Config) string {
	target, err := url.Parse(endpoint(config))
	if config.Proxy == nil || err != nil {
		return ""
	}
	proxy, err := config.Proxy(&http.Request{URL: target})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}

// addLabels adds the wanted labels to an object that exists already, and takes
// none away.
func addLabels(have, want metav1.Object) {
	labels := maps.Clone(have.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	have.SetLabels(labels)
}
