package v1alpha1

// Names of the ConfigMap that identifies the epoch of a control plane.
const (
	// EpochName is the name of the ConfigMap, in the namespace NamespaceKarmadaSystem.
	EpochName = "karmada-epoch"

	// EpochIDKey is the key of the identity of the epoch. The identity changes with each
	// restore of a backup.
	EpochIDKey = "id"

	// EpochBeganKey is the key of the start time of the epoch, in RFC 3339 format.
	EpochBeganKey = "began"

	// EpochCauseKey is the key of the cause of the epoch.
	EpochCauseKey = "cause"

	// EpochBackupKey is the key of the time of the restored backup, in RFC 3339 format.
	// It is absent if the backup is unknown.
	EpochBackupKey = "backup"

	// ConfirmRestoreAnnotation on the ConfigMap ends the protection of member clusters
	// after a restore. Its value is the identity of the epoch.
	ConfirmRestoreAnnotation = "cluster.karmada.io/confirm-restore"
)

// Reasons of events.
const (
	// EventReasonRestoreNotConfirmed, of type Warning, on the Cluster: deletions wait until a user
	// confirms the restore of a backup.
	EventReasonRestoreNotConfirmed = "RestoreNotConfirmed"
)
