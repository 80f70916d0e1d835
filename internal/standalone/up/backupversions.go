package up

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// snapshotName is the name of the etcd snapshot in an archive.
const snapshotName = "etcd.snapshot"

// errUnsupportedBackup means that another version wrote the backup, and that this program cannot read
// that version's backups.
var errUnsupportedBackup = errors.New("this program cannot read the backup")

// backupVersions are the Kubernetes and etcd versions in the program that reads a backup.
type backupVersions struct{ Kubernetes, Etcd string }

// CheckReadable returns an error if a program with the reader's versions cannot read the backup,
// because the backup's format is unknown, or because the backup has another major version or a newer
// minor version of Kubernetes or etcd.
func (m backupManifest) CheckReadable(reader backupVersions) error {
	newerProgram := fmt.Sprintf("restore it with Karmada %s or newer", m.Karmada)
	switch {
	case m.Format < 1:
		return fmt.Errorf("%w: the manifest has no format", ErrDamaged)
	case m.Format > backupFormatVersion:
		return fmt.Errorf("%w: it has format %d, and the newest supported format is %d: %s", errUnsupportedBackup, m.Format, backupFormatVersion,
			newerProgram)
	case !slices.ContainsFunc(m.Files, func(file backupFile) bool { return file.Name == snapshotName }):
		return fmt.Errorf("%w: it has no snapshot of etcd", ErrDamaged)
	}
	for _, component := range []struct{ name, written, read string }{
		{"Kubernetes", m.Kubernetes, reader.Kubernetes}, {"etcd", m.Etcd, reader.Etcd},
	} {
		if err := validateBackupVersion(component.name, component.written, component.read, newerProgram); err != nil {
			return err
		}
	}
	return nil
}

func validateBackupVersion(component, writer, reader, newerProgram string) error {
	writerVersion, err := version.ParseGeneric(writer)
	if err != nil {
		return fmt.Errorf("%w: parsing the version of %s that wrote it: %w", ErrDamaged, component, err)
	}
	readerVersion, err := version.ParseGeneric(reader)
	if err != nil {
		return fmt.Errorf("parsing the version of %s: %w", component, err)
	}
	if writerVersion.Major() != readerVersion.Major() {
		return fmt.Errorf("%w: it was written by %s %s, and this program has %s: restore it with a program that has %s %d", errUnsupportedBackup,
			component, writer, reader, component, writerVersion.Major())
	}
	if writerVersion.Minor() > readerVersion.Minor() {
		return fmt.Errorf("%w: it was written by %s %s, and this program has %s: %s", errUnsupportedBackup, component, writer, reader,
			newerProgram)
	}
	return nil
}
