package aggregated_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"karmada.io/karmada/internal/servers/aggregated"
)

func TestRegistration(t *testing.T) {
	port := int32(8443)
	service, apiService := aggregated.Registration([]byte("ca"), "localhost", port)
	wantService := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-aggregated-apiserver"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if diff := cmp.Diff(wantService, service); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	wantAPIService := &apiregistrationv1.APIService{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   "v1alpha1.cluster.karmada.io",
			Labels: map[string]string{"app": "karmada-aggregated-apiserver", "apiserver": "true"},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "cluster.karmada.io", Version: "v1alpha1", GroupPriorityMinimum: 2000, VersionPriority: 10,
			CABundle: []byte("ca"),
			Service:  &apiregistrationv1.ServiceReference{Namespace: "karmada-system", Name: "karmada-aggregated-apiserver", Port: &port},
		},
	}
	if diff := cmp.Diff(wantAPIService, apiService); diff != "" {
		t.Errorf("API service (-want +got):\n%s", diff)
	}
	if aggregated.ServingName != "karmada-aggregated-apiserver.karmada-system.svc" {
		t.Errorf("the certificate is verified for %s", aggregated.ServingName)
	}
}
