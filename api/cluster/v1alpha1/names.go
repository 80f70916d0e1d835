package v1alpha1

// Domain is the domain of Karmada. The domain of a label, an annotation, a finalizer or a taint
// of Karmada is Domain, or ends with DomainSuffix. The names of the admission webhooks of
// Karmada end with DomainSuffix.
const (
	Domain       = "karmada.io"
	DomainSuffix = "." + Domain
)

// Labels and taints of the nodes of a simulated member.
const (
	// SimulatedNodeLabel, with the value true, is the label of the nodes that are simulated.
	SimulatedNodeLabel = "karmada.io/simulated"

	// ProgramNodeLabel, with the value true, and ProgramNodeTaint are set on the node that runs
	// Pods as processes. Pods that the node can run select the label and tolerate the taint.
	ProgramNodeLabel = "karmada.io/runs-programs"
	ProgramNodeTaint = "karmada.io/runs-programs"
)
