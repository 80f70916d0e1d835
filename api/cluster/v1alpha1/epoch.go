package v1alpha1

// Names of the ConfigMap that says which life of its storage a control plane lives.
const (
	// EpochName is the name of the ConfigMap, in the namespace NamespaceKarmadaSystem.
	EpochName = "karmada-epoch"

	// EpochIDKey is the key of the identity of the epoch. It is another one after each
	// restore of a backup.
	EpochIDKey = "id"

	// EpochBeganKey is the key of the time at which the epoch began, as of RFC 3339.
	EpochBeganKey = "began"

	// EpochCauseKey is the key of what began the epoch.
	EpochCauseKey = "cause"

	// EpochBackupKey is the key of the time of the backup that was restored, as of RFC
	// 3339; it is absent where no backup is known.
	EpochBackupKey = "backup"

	// ConfirmRestoreAnnotation on the ConfigMap ends the protection of member clusters
	// after a restore. Its value is the identity of the epoch.
	ConfirmRestoreAnnotation = "cluster.karmada.io/confirm-restore"
)

// EventReasonRestoreNotConfirmed is the reason of the Warning event on a Cluster in
// which deletions wait until a user confirms the restore of a backup.
const EventReasonRestoreNotConfirmed = "RestoreNotConfirmed"
