package controllermanager

import (
	"time"

	"karmada.io/karmada/internal/programs"
)

// newClusterAPIFlags returns the flags of a feature that this version does not have, and that belongs to
// no controller of the table: it joins the clusters that the Cluster API manages.
func newClusterAPIFlags() *programs.IgnoredFlags {
	return programs.NewIgnoredFlags(
		programs.IgnoredFlag{Name: "cluster-api-context", Default: "", Help: "Context in the kubeconfig of --cluster-api-kubeconfig."},
		programs.IgnoredFlag{Name: "cluster-api-kubeconfig", Default: "",
			Help: "Kubeconfig file of the Cluster API management cluster whose clusters are joined."},
	)
}

// newAutoscalerFlags returns the flags of the controller federatedHorizontalPodAutoscaler.
func newAutoscalerFlags() *programs.IgnoredFlags {
	const prefix = "horizontal-pod-autoscaler-"
	return programs.NewIgnoredFlags(
		programs.IgnoredFlag{Name: prefix + "cpu-initialization-period", Default: 5 * time.Minute,
			Help: "Period after the start of a Pod in which its CPU usage may be ignored."},
		programs.IgnoredFlag{Name: prefix + "downscale-delay", Default: 5 * time.Minute, Help: "Minimum time between two downscales."},
		programs.IgnoredFlag{Name: prefix + "downscale-stabilization", Default: 5 * time.Minute,
			Help: "Period of past recommendations that are considered before replicas are scaled down."},
		programs.IgnoredFlag{Name: prefix + "initial-readiness-delay", Default: 30 * time.Second,
			Help: "Period after the start of a Pod in which a change of its readiness counts as its initial readiness."},
		programs.IgnoredFlag{Name: prefix + "sync-period", Default: 15 * time.Second,
			Help: "Period at which the number of replicas is computed."},
		programs.IgnoredFlag{Name: prefix + "tolerance", Default: 0.1,
			Help: "Maximum relative deviation of a metric from its target that does not trigger scaling."},
		programs.IgnoredFlag{Name: prefix + "upscale-delay", Default: 3 * time.Minute, Help: "Minimum time between two upscales."},
	)
}
