// Package hosted answers: which objects run a component of Karmada in a host cluster, how do stored
// objects differ from them, and are their Pods ready?
//
// An installer passes desired objects to an Applier. Invariants: an object that is up to date is not
// written. An object of another installer is neither changed nor deleted. Each object is labeled
// with its installer.
package hosted

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Names of the programs, which are also the names of the components.
const (
	EstimatorProgram   = "karmada-scheduler-estimator"
	DeschedulerProgram = "karmada-descheduler"
)

// Keys of the Secret with the certificates of a control plane.
const (
	CertKey = "karmada.crt"
	KeyKey  = "karmada.key"
	CAKey   = "ca.crt"
)

// Directories of the mounted Secrets in containers.
const (
	pkiDir    = "/etc/karmada/pki"
	configDir = "/etc/karmada/config"
)

const (
	metricsPort = 8080
	// probePeriod, probeDelay and probeTimeout are the times of liveness probes in seconds.
	probePeriod  = 15
	probeDelay   = 15
	probeTimeout = 5
	appLabel     = "app"
)

// Workload are the properties of the Deployment of a component.
type Workload struct {
	Namespace     string
	Image         string
	Replicas      int32
	PriorityClass string
}

// program is a Deployment that runs one program of Karmada.
type program struct {
	Workload
	name, program string
	labels        map[string]string
	annotations   map[string]string
	arguments     []string
	healthPort    int32
	ports         []corev1.ContainerPort
	// configSecret is the name of the Secret that is mounted at configDir.
	configSecret string
}

// deployment returns the Deployment of a program, with the certificates of the control plane.
func (p program) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.name, Labels: p.labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(p.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: p.labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: p.labels, Annotations: p.annotations},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					PriorityClassName:            p.PriorityClass,
					Containers:                   []corev1.Container{p.container()},
					Volumes:                      []corev1.Volume{secretVolume("pki", clusterv1alpha1.CertificateSecret), secretVolume("config", p.configSecret)},
				},
			},
		},
	}
}

func (p program) container() corev1.Container {
	return corev1.Container{
		Name: p.program, Image: p.Image, Command: append([]string{"/bin/" + p.program}, p.arguments...),
		Ports: append(p.ports, corev1.ContainerPort{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}),
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(p.healthPort), Scheme: corev1.URISchemeHTTP}},
			InitialDelaySeconds: probeDelay, PeriodSeconds: probePeriod, TimeoutSeconds: probeTimeout,
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "pki", MountPath: pkiDir, ReadOnly: true}, {Name: "config", MountPath: configDir, ReadOnly: true}},
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}

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
