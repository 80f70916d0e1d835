package registration

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// SystemLabels mark what Karmada has made for itself.
func SystemLabels() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

// Namespace is a namespace that is made if it is missing.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: SystemLabels()}}
}

// Account is a service account in a member.
func Account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: SystemLabels()}}
}

// ExecutionSpace is where the Works of a cluster are.
func ExecutionSpace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionSpacePrefix + cluster}}
}

// AddLabels adds the wanted labels to an object that exists already, and takes
// none away.
func AddLabels(have, want metav1.Object) {
	labels := maps.Clone(have.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	have.SetLabels(labels)
}

// Endpoint is the URL of the API server. A kubeconfig may leave out the scheme.
func Endpoint(config *rest.Config) string {
	if strings.Contains(config.Host, "://") {
		return config.Host
	}
	return "https://" + config.Host
}

// ProxyOf is the proxy that the configuration itself names; one that comes from
// the environment of this process says nothing about the control plane.
func ProxyOf(config *rest.Config) string {
	target, err := url.Parse(Endpoint(config))
	if config.Proxy == nil || err != nil {
		return ""
	}
	proxy, err := config.Proxy(&http.Request{URL: target})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}
