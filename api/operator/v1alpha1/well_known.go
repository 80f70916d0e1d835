package v1alpha1

const (
	// Finalizer keeps a Karmada object until its control plane is removed.
	Finalizer = "operator.karmada.io/finalizer"

	// DisableCascadingDeletionLabel on a Karmada object, with any value but "false", keeps
	// the control plane when the Karmada object is deleted.
	DisableCascadingDeletionLabel = "operator.karmada.io/disable-cascading-deletion"
)

// ManagedBy is the value of the label app.kubernetes.io/managed-by on all objects
// that the operator installs. The operator removes only objects with this label.
const ManagedBy = "karmada-operator"

// HostKubeconfigKey is the key under which the Secret of a remote host cluster
// holds its kubeconfig.
const HostKubeconfigKey = "kubeconfig"

// ConditionType is the type of a condition of a Karmada object.
type ConditionType string

// Ready reports whether the control plane is installed as described by the spec.
const Ready ConditionType = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonProgressing, with status False, means that the installation or removal is in
	// progress.
	ReasonProgressing = "Progressing"
	// ReasonCompleted, with status True, means that the installation is done.
	ReasonCompleted = "Completed"
	// ReasonFailed, with status False, means that a task failed. The task is retried.
	ReasonFailed = "Failed"
	// ReasonValidationError, with status False, means that the spec is invalid. It is also
	// the reason of a Warning event.
	ReasonValidationError = "ValidationError"
)
