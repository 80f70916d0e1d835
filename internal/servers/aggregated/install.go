package aggregated

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ServiceName is the name of the Service of this server in the namespace karmada-system.
const ServiceName = "karmada-aggregated-apiserver"

// ServingName is the DNS name that the serving certificate must contain. The Karmada API server
// verifies this name for any host of the Service.
const ServingName = ServiceName + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"

// Registration returns a Service and an APIService, with which the Karmada API server proxies
// requests for the API group to host and port. The Service is an alias of the host, which is a DNS
// name or an IPv4 address. caBundle is the CA of the serving certificate in PEM.
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
