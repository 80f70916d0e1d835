// Package epoch answers "is the storage of the control plane still the one that this
// process knows, and may objects be deleted in members?".
//
// A backup that is restored takes the storage back in time. Processes that run on
// remember a future that no longer exists, and the control plane asks members for a
// state of the past. A ConfigMap names the life of the storage, its epoch. A process
// that sees another epoch, or a resourceVersion that this storage cannot have, starts
// anew. Until a user confirms the restore no object is deleted in members.
//
// Invariants: everything is a pure function of its arguments; an epoch that cannot be
// read is never a confirmed one.
package epoch

import (
	"cmp"
	"fmt"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Cause is what began an epoch.
type Cause string

const (
	// Installed is the cause of the first epoch of a control plane.
	Installed Cause = "Installed"
	// Restored is the cause of an epoch that a restored backup began.
	Restored Cause = "Restored"
	// StorageReplaced is the cause of an epoch that a component began because the
	// resourceVersion of the storage went back, or leapt ahead as after a restore.
	StorageReplaced Cause = "StorageReplaced"
	// Unknown is the cause of an epoch whose ConfigMap names none.
	Unknown Cause = "Unknown"
)

// Epoch is one life of the storage of a control plane. The zero value is that of a
// storage without the ConfigMap.
type Epoch struct {
	ID    string
	Cause Cause
	// Began is the text of the time at which it began, Backup that of the backup.
	Began, Backup string
	// Confirmed reports whether a user has confirmed this very epoch.
	Confirmed bool
}

// Read returns the epoch that a ConfigMap holds. Without the ConfigMap the epoch is the
// zero value.
func Read(data, annotations map[string]string) Epoch {
	id := data[clusterv1alpha1.EpochIDKey]
	return Epoch{
		ID: id, Cause: cmp.Or(Cause(data[clusterv1alpha1.EpochCauseKey]), Unknown),
		Began: data[clusterv1alpha1.EpochBeganKey], Backup: data[clusterv1alpha1.EpochBackupKey],
		Confirmed: id != "" && annotations[clusterv1alpha1.ConfirmRestoreAnnotation] == id,
	}
}

// New is an epoch that begins now. A zero backup is one that is not known.
func New(id string, cause Cause, now, backup time.Time) Epoch {
	e := Epoch{ID: id, Cause: cause, Began: now.UTC().Format(time.RFC3339)}
	if !backup.IsZero() {
		e.Backup = backup.UTC().Format(time.RFC3339)
	}
	return e
}

// Data is what the ConfigMap of the epoch holds.
func (e Epoch) Data() map[string]string {
	data := map[string]string{
		clusterv1alpha1.EpochIDKey: e.ID, clusterv1alpha1.EpochBeganKey: e.Began, clusterv1alpha1.EpochCauseKey: string(e.Cause),
	}
	if e.Backup != "" {
		data[clusterv1alpha1.EpochBackupKey] = e.Backup
	}
	return data
}

// Unconfirmed reports whether deletions in members wait for a user. A ConfigMap whose
// cause is not a known one counts as that of a restore.
func (e Epoch) Unconfirmed() bool {
	return e != Epoch{} && e.Cause != Installed && !e.Confirmed
}

// Follows reports whether an epoch may be the one that began when the storage of an
// earlier epoch was replaced: deletions wait for a user, or a user confirmed it since.
// Neither is true of a storage that lost its ConfigMap, of a first epoch, and of an
// earlier epoch that came back.
func (e Epoch) Follows(earlier Epoch) bool {
	return e.Unconfirmed() || e.Confirmed && e.Cause != Installed && e.ID != earlier.ID && e.Began > earlier.Began
}

// Origin says in a few words where an epoch that is not the first one came from.
func (e Epoch) Origin() string {
	switch {
	case e.Cause == StorageReplaced:
		return "running on a storage that was replaced by another state of it"
	case e.Backup != "":
		return "restored from a backup of " + shortened(e.Backup)
	default:
		return "restored from a backup"
	}
}

// Confirm is the command that confirms the epoch.
func (e Epoch) Confirm() string {
	return fmt.Sprintf("kubectl annotate configmap %s -n %s --overwrite %s=%s",
		clusterv1alpha1.EpochName, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.ConfirmRestoreAnnotation, cmp.Or(shortened(e.ID), "<id>"))
}

// Message says why a deletion is held, and how a user goes on.
func (e Epoch) Message() string {
	return fmt.Sprintf("The control plane is %s, and no user has confirmed that yet. Nothing is deleted in member clusters until then. "+
		"Compare the members with what the control plane wants (`karmada restore --report`), then run `karmada restore --confirm`, or: %s", e.Origin(), e.Confirm())
}

// longestValue is more than an identity and a time have.
const longestValue = 64

// shortened is a value of the ConfigMap as messages show it.
func shortened(value string) string {
	if len(value) <= longestValue {
		return value
	}
	return value[:longestValue] + "..."
}
