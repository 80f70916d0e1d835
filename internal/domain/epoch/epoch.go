// Package epoch decides whether the storage of the control plane is still the storage that this
// process read before, and whether objects may be deleted in members.
//
// Restoring a backup resets the storage to an earlier state. Running processes then hold state that
// no longer exists, and the control plane applies an old desired state to members. An epoch is the
// period of the storage between two restores. A ConfigMap contains the ID of the epoch. A process
// restarts if it observes another epoch, or a resourceVersion that this storage cannot have. No
// object is deleted in members until a user confirms the restore.
//
// Invariants: every function is pure; an epoch that cannot be read never counts as confirmed.
package epoch

import (
	"cmp"
	"fmt"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Cause is the reason why an epoch began.
type Cause string

const (
	// CauseInstalled means that the epoch is the first epoch of a control plane.
	CauseInstalled Cause = "Installed"
	// CauseRestored means that the epoch began after a backup was restored.
	CauseRestored Cause = "Restored"
	// CauseStorageReplaced means that the epoch began because a component found that the
	// resourceVersion of the storage decreased, or increased by more than writes can cause.
	CauseStorageReplaced Cause = "StorageReplaced"
	// CauseUnknown means that the ConfigMap contains no cause.
	CauseUnknown Cause = "Unknown"
)

// Epoch is the period of the storage between two restores. The zero value means that the storage
// has no ConfigMap of the epoch.
type Epoch struct {
	ID    string
	Cause Cause
	// BeganAt is the time at which the epoch began. BackupTime is the time of the backup. Both are
	// text.
	BeganAt, BackupTime string
	// Confirmed reports whether a user confirmed this epoch.
	Confirmed bool
}

// Read parses the epoch from the data and annotations of the ConfigMap. It returns the zero value
// if there is no ConfigMap.
func Read(data, annotations map[string]string) Epoch {
	id := data[clusterv1alpha1.EpochIDKey]
	return Epoch{
		ID: id, Cause: cmp.Or(Cause(data[clusterv1alpha1.EpochCauseKey]), CauseUnknown),
		BeganAt: data[clusterv1alpha1.EpochBeganKey], BackupTime: data[clusterv1alpha1.EpochBackupKey],
		Confirmed: id != "" && annotations[clusterv1alpha1.ConfirmRestoreAnnotation] == id,
	}
}

// New returns an epoch that begins now. A zero backup time means that the backup time is unknown.
func New(id string, cause Cause, now, backup time.Time) Epoch {
	e := Epoch{ID: id, Cause: cause, BeganAt: now.UTC().Format(time.RFC3339)}
	if !backup.IsZero() {
		e.BackupTime = backup.UTC().Format(time.RFC3339)
	}
	return e
}

// Data returns the data of the ConfigMap that stores the epoch.
func (e Epoch) Data() map[string]string {
	data := map[string]string{
		clusterv1alpha1.EpochIDKey: e.ID, clusterv1alpha1.EpochBeganKey: e.BeganAt, clusterv1alpha1.EpochCauseKey: string(e.Cause),
	}
	if e.BackupTime != "" {
		data[clusterv1alpha1.EpochBackupKey] = e.BackupTime
	}
	return data
}

// NeedsConfirmation reports whether deletions in members wait for the confirmation of a user. An
// unknown cause is treated as a restore.
func (e Epoch) NeedsConfirmation() bool {
	return e != Epoch{} && e.Cause != CauseInstalled && !e.Confirmed
}

// Follows reports whether this epoch may have begun when the storage of an earlier epoch was
// replaced. This is the case if deletions wait for the confirmation of a user, or if a user
// confirmed this epoch after the earlier epoch. It is not the case for a storage without the
// ConfigMap of the epoch, for a first epoch, and if an even earlier epoch is in use again.
func (e Epoch) Follows(earlier Epoch) bool {
	return e.NeedsConfirmation() || e.Confirmed && e.Cause != CauseInstalled && e.ID != earlier.ID && e.BeganAt > earlier.BeganAt
}

// DescribeOrigin describes the cause of an epoch that is not the first one.
func (e Epoch) DescribeOrigin() string {
	switch {
	case e.Cause == CauseStorageReplaced:
		return "running on a storage that was replaced by another state"
	case e.BackupTime != "":
		return "restored from a backup of " + shorten(e.BackupTime)
	default:
		return "restored from a backup"
	}
}

// ConfirmCommand returns the command that confirms the epoch.
func (e Epoch) ConfirmCommand() string {
	return fmt.Sprintf("kubectl annotate configmap %s -n %s --overwrite %s=%s",
		clusterv1alpha1.EpochName, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.ConfirmRestoreAnnotation,
		cmp.Or(shorten(e.ID), "<id>"))
}

// HoldMessage describes why a deletion is held and how a user continues.
func (e Epoch) HoldMessage() string {
	return fmt.Sprintf("The control plane is %s, and no user has confirmed that yet. Nothing is deleted in member clusters until then. "+
		"Compare the members with the desired state (`karmada restore --report`), then run `karmada restore --confirm`, or: %s",
		e.DescribeOrigin(), e.ConfirmCommand())
}

// maxShownBytes is the maximum length of a value in a message. Valid IDs and times are shorter.
const maxShownBytes = 64

// shorten truncates a value of the ConfigMap to maxShownBytes for use in a message.
func shorten(value string) string {
	if len(value) <= maxShownBytes {
		return value
	}
	return value[:maxShownBytes] + "..."
}
