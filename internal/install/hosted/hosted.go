// Package hosted answers: how do the stored objects of a host cluster differ from the desired ones, and
// are their Pods ready?
//
// An installer passes desired objects to an Applier. Invariants: an object that is up to date is not
// written. An object of another installer is neither changed nor deleted. Each object is labeled
// with its installer.
package hosted

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Describe returns the kind, the namespace and the name of an object for messages.
func Describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}
