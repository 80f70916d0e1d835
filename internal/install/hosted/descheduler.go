package hosted

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const deschedulerHealthPort = 10358

// configKey is the key of the kubeconfig of the control plane in the Secret of a component.
const configKey = "karmada.config"

// Descheduler is the descheduler of a control plane.
type Descheduler struct{ Workload }

// ConfigSecret returns the name of the Secret with the kubeconfig of a component for the control
// plane.
func ConfigSecret(component string) string { return component + "-config" }

// Labels are the labels of the Pods.
func (Descheduler) Labels() map[string]string {
	return map[string]string{appLabel: DeschedulerProgram}
}

// Objects returns the objects in the host cluster.
func (d Descheduler) Objects() []client.Object {
	return []client.Object{program{
		Workload: d.Workload, name: DeschedulerProgram, program: DeschedulerProgram, labels: d.Labels(),
		configSecret: ConfigSecret(DeschedulerProgram), healthPort: deschedulerHealthPort,
		arguments: []string{
			"--kubeconfig=" + configDir + "/" + configKey,
			"--leader-elect-resource-namespace=" + d.Namespace,
			"--scheduler-estimator-ca-file=" + pkiDir + "/" + CAKey,
			"--scheduler-estimator-cert-file=" + pkiDir + "/" + CertKey,
			"--scheduler-estimator-key-file=" + pkiDir + "/" + KeyKey,
			"--metrics-bind-address=0.0.0.0:" + strconv.Itoa(metricsPort),
			"--health-probe-bind-address=0.0.0.0:" + strconv.Itoa(deschedulerHealthPort),
		},
	}.deployment()}
}
