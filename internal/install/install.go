// Package install applies the objects of a Karmada installation, in the host cluster and in the
// control plane, and waits until Pods, CRDs and aggregated APIs are ready.
//
// All objects are applied server-side. A second installation upgrades the objects of an older
// version, keeps the fields of other managers, and writes no object that is up to date.
package install

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/rendering"
)

// Names of the programs, which are also the names of the components.
const (
	EstimatorProgram   = "karmada-scheduler-estimator"
	DeschedulerProgram = "karmada-descheduler"
	SearchProgram      = "karmada-search"
)

// Keys of the Secret with the certificates of a control plane.
const (
	CertKey = "karmada.crt"
	KeyKey  = "karmada.key"
	CAKey   = "ca.crt"
)

// Names of clusters in messages.
const (
	HostName    = "the host cluster"
	KarmadaName = "the control plane"
)

// ConfigSecret returns the name of the Secret with the kubeconfig of a component for the control
// plane.
func ConfigSecret(component string) string { return component + "-config" }

// NewSecret returns a Secret with data.
func NewSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// NewNamespace returns a namespace.
func NewNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

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

// Describe returns the kind, the namespace and the name of an object for messages.
func Describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}

// ControlPlaneObjects returns the objects that a control plane needs besides the CRDs, in two
// groups: the namespaces, and all other objects, which can be in these namespaces.
func ControlPlaneObjects(installation rendering.Installation, controlPlane rendering.ControlPlane) (namespaces, others []client.Object, err error) {
	objects, err := installation.ControlPlane(controlPlane)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			namespaces = append(namespaces, object)
			continue
		}
		others = append(others, object)
	}
	return namespaces, others, nil
}

// ServerObjects returns the objects of the control plane that register one aggregated API server: its
// Service and its APIServices. ca is the certificate authority of the server in PEM.
func ServerObjects(installation rendering.Installation, server string, address rendering.Address, ca []byte) ([]client.Object, error) {
	objects, err := installation.ControlPlane(rendering.ControlPlane{CA: ca, APIServers: map[string]rendering.Address{server: address}})
	if err != nil {
		return nil, err
	}
	var registered []client.Object
	for _, object := range objects {
		service, _, _ := unstructured.NestedString(object.Object, "spec", "service", "name")
		if object.GetKind() == "Service" && object.GetName() == server || object.GetKind() == "APIService" && service == server {
			registered = append(registered, object)
		}
	}
	if len(registered) == 0 {
		return nil, fmt.Errorf("%q is no aggregated API server of the chart", server)
	}
	return registered, nil
}
