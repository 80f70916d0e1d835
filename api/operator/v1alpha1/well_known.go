package v1alpha1

const (
	// Finalizer keeps a Karmada object until its control plane is removed.
	Finalizer = "operator.karmada.io/finalizer"

	// DisableCascadingDeletionLabel on a Karmada object decides whether its
	// control plane outlives it: with any value but "false" it does.
	DisableCascadingDeletionLabel = "operator.karmada.io/disable-cascading-deletion"
)

// ManagedBy is the value of the label app.kubernetes.io/managed-by on everything
// that the operator installs. It removes nothing that lacks it.
const ManagedBy = "karmada-operator"

// HostKubeconfigKey is the key under which the Secret of a remote host cluster
// holds its kubeconfig.
const HostKubeconfigKey = "kubeconfig"

// ConditionType is the type of a condition of a Karmada object.
type ConditionType string

// Ready says whether the control plane is installed as the spec wants it.
const Ready ConditionType = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonProgressing means, with False, that installing or removing goes on.
	ReasonProgressing = "Progressing"
	// ReasonCompleted means, with True, that the installation is done.
	ReasonCompleted = "Completed"
	// ReasonFailed means, with False, that a task failed; it is retried.
	ReasonFailed = "Failed"
	// ReasonValidationError means, with False, that the spec is not acceptable.
	// It is also the reason of a Warning event.
	ReasonValidationError = "ValidationError"
)
