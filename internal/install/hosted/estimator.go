package hosted

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	estimatorHealthPort = 10351
	// configHashBytes is the length of a hash that distinguishes two kubeconfigs.
	configHashBytes = 8
	clusterLabel    = "cluster"
)

// Estimator is the accurate estimator of one member.
type Estimator struct {
	Workload
	// Cluster is the name of the member in the control plane.
	Cluster string
	// Kubeconfig is the kubeconfig of the member, which refers to no files.
	Kubeconfig []byte
}

// Name is the name of the Deployment and of the Services of the estimator.
func (e Estimator) Name() string { return clusterv1alpha1.EstimatorPrefix + e.Cluster }

// KubeconfigSecret is the name of the Secret with the kubeconfig, and of its only key.
func (e Estimator) KubeconfigSecret() string { return e.Cluster + "-kubeconfig" }

// Labels are the labels of the Pods.
func (e Estimator) Labels() map[string]string {
	return map[string]string{appLabel: EstimatorProgram, clusterLabel: e.Cluster}
}

// Objects returns the objects in the host cluster, in the order in which they are created.
func (e Estimator) Objects() []client.Object {
	hash := sha256.Sum256(e.Kubeconfig)
	return []client.Object{
		NewSecret(e.Namespace, e.KubeconfigSecret(), map[string][]byte{e.KubeconfigSecret(): e.Kubeconfig}),
		e.service(),
		program{
			Workload: e.Workload, name: e.Name(), program: EstimatorProgram, labels: e.Labels(), configSecret: e.KubeconfigSecret(),
			annotations: map[string]string{clusterv1alpha1.ConfigHashAnnotation: hex.EncodeToString(hash[:configHashBytes])},
			healthPort:  estimatorHealthPort,
			ports:       []corev1.ContainerPort{{Name: "server", ContainerPort: clusterv1alpha1.EstimatorPort, Protocol: corev1.ProtocolTCP}},
			arguments: []string{
				"--kubeconfig=" + configDir + "/" + e.KubeconfigSecret(),
				"--cluster-name=" + e.Cluster,
				"--server-port=" + strconv.Itoa(clusterv1alpha1.EstimatorPort),
				"--grpc-auth-cert-file=" + pkiDir + "/" + CertKey,
				"--grpc-auth-key-file=" + pkiDir + "/" + KeyKey,
				"--grpc-client-ca-file=" + pkiDir + "/" + CAKey,
				"--metrics-bind-address=0.0.0.0:" + strconv.Itoa(metricsPort),
				"--health-probe-bind-address=0.0.0.0:" + strconv.Itoa(estimatorHealthPort),
			},
		}.deployment(),
	}
}

func (e Estimator) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name(), Labels: e.Labels()},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: e.Labels(), Ports: estimatorPorts(clusterv1alpha1.EstimatorPort)},
	}
}

func estimatorPorts(target int) []corev1.ServicePort {
	return []corev1.ServicePort{{
		Name: "server", Protocol: corev1.ProtocolTCP, Port: clusterv1alpha1.EstimatorPort, TargetPort: intstr.FromInt(target),
	}}
}

// EstimatorAddress returns the Service of the control plane with the address of the estimator of a
// cluster, from which the scheduler reads the address.
func EstimatorAddress(cluster, host string, port int) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EstimatorPrefix + cluster},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host, Ports: estimatorPorts(port)},
	}
}
