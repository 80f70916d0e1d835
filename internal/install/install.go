// Package install installs a Karmada control plane in a host cluster, changes it and removes it. It also
// applies objects to a control plane and waits for Pods, CRDs and aggregated APIs.
//
// The objects come from the chart; see package rendering. All objects are written by server-side apply, so
// an installation keeps the fields of other managers and upgrades objects of an older version. An Installer
// writes objects in the order in which they depend on each other. Invariants:
//
//   - A second run with the same values writes nothing, and a run after a failed run continues.
//   - Objects of other installers are never changed or deleted.
//   - Certificates are stored in Secrets of the host cluster. A run issues only certificates that are
//     missing or due for renewal.
//   - The Secret <release>-installation contains the values and the names of all objects, so that
//     later commands do not need the flags of the first one.
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
	"karmada.io/karmada/internal/version"
)

// Names of the programs, which are also their components' names.
const (
	EstimatorProgram   = "karmada-scheduler-estimator"
	DeschedulerProgram = "karmada-descheduler"
	SearchProgram      = "karmada-search"
)

// Keys of the Secret that contains a control plane's certificates.
const (
	CertKey = "karmada.crt"
	KeyKey  = "karmada.key"
	CAKey   = "ca.crt"
)

// Names of the clusters in messages.
const (
	HostName    = "the host cluster"
	KarmadaName = "the control plane"
)

// DefaultImage returns the image that contains all programs of this version.
func DefaultImage() string { return rendering.Image(version.Get().ImageTag()) }

// ConfigSecret returns the name of the Secret that contains a component's kubeconfig for the control plane.
func ConfigSecret(component string) string { return component + "-config" }

// NewSecret returns an opaque Secret with its kind set.
func NewSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// NewNamespace returns a namespace with its kind set.
func NewNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// EstimatorAddress returns the Service in the control plane from which the scheduler reads the address of a
// cluster's estimator.
func EstimatorAddress(cluster, host string, port int) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EstimatorPrefix + cluster},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host, Ports: []corev1.ServicePort{{
			Name: "server", Protocol: corev1.ProtocolTCP, Port: clusterv1alpha1.EstimatorPort, TargetPort: intstr.FromInt(port),
		}}},
	}
}

// Describe returns an object's kind, namespace and name for messages.
func Describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}

// ControlPlaneObjects returns the objects that a control plane needs besides its CRDs. Namespaces are
// returned separately, because they must be applied before the objects in them.
func ControlPlaneObjects(installation rendering.Installation,
	controlPlane rendering.ControlPlane) (namespaces, others []client.Object, err error) {
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

// ServerObjects returns the Service and the APIServices that register an aggregated API server in the
// control plane. ca is the CA certificate for the server, in PEM.
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
