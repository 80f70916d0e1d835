package hosted

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// EstimatorAddress returns the Service of the control plane with the address of the estimator of a
// cluster, from which the scheduler reads the address.
func EstimatorAddress(cluster, host string, port int) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EstimatorPrefix + cluster},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host, Ports: []corev1.ServicePort{{
			Name: "server", Protocol: corev1.ProtocolTCP, Port: clusterv1alpha1.EstimatorPort, TargetPort: intstr.FromInt(port),
		}}},
	}
}
