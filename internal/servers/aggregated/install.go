package aggregated

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ServiceName is the name of the Service by which the Karmada API server finds
// this server, in the namespace karmada-system.
const ServiceName = "karmada-aggregated-apiserver"

// ServingName is the DNS name that the serving certificate must hold: the Karmada
// API server checks it whatever host the Service leads to.
const ServingName = ServiceName + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"

// Registration returns what makes the Karmada API server pass requests for the
// group on to a server at host and port: a Service that is an alias of the host,
// and the APIService. The host is a DNS name or an IPv4 address. The serving
// certificate is checked with caBundle, in PEM.
func Registration(caBundle []byte, host string, port int32) (*corev1.Service, *apiregistrationv1.APIService) {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: ServiceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
	apiService := &apiregistrationv1.APIService{
		TypeMeta: metav1.TypeMeta{APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   clusterv1alpha1.GroupVersion.Version + "." + clusterv1alpha1.GroupName,
			Labels: map[string]string{"app": ServiceName, "apiserver": "true"},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group:                clusterv1alpha1.GroupName,
			Version:              clusterv1alpha1.GroupVersion.Version,
			GroupPriorityMinimum: 2000,
			VersionPriority:      10,
			CABundle:             caBundle,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: service.Namespace,
				Name:      service.Name,
				Port:      &port,
			},
		},
	}
	return service, apiService
}
