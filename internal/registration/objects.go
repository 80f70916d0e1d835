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
	"karmada.io/karmada/internal/domain/work"
)

// SystemLabels returns the labels of objects that Karmada creates for its own use.
func SystemLabels() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

// NewNamespace returns a namespace with the system labels.
func NewNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: SystemLabels()}}
}

// NewServiceAccount returns a service account with the system labels.
func NewServiceAccount(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: SystemLabels()}}
}

// NewExecutionNamespace returns the control plane's namespace that contains the cluster's Works.
func NewExecutionNamespace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(cluster)}}
}

// AddLabels adds the labels of want to have, and keeps the other labels of have.
func AddLabels(have, want metav1.Object) {
	labels := maps.Clone(have.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	have.SetLabels(labels)
}

// Endpoint returns the API server's URL. It adds the scheme https if the configuration's host contains none.
func Endpoint(config *rest.Config) string {
	if strings.Contains(config.Host, "://") {
		return config.Host
	}
	return "https://" + config.Host
}

// ProxyURL returns the configuration's proxy URL, or an empty string. It ignores a proxy from environment
// variables, because the control plane runs in another environment.
func ProxyURL(config *rest.Config) string {
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
