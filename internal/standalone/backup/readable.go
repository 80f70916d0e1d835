package backup

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Snapshot is the name of the snapshot of etcd in an archive.
const Snapshot = "etcd.snapshot"

// ErrForeign says that a backup was written by a version that this program cannot read.
var ErrForeign = errors.New("this program cannot read it")

// Versions are those of the program that reads a backup.
type Versions struct{ Kubernetes, Etcd string }

// CheckReadable returns an error when a program with those versions cannot read the
// backup: another format, another major version of Kubernetes or etcd, or a newer one.
func (m Manifest) CheckReadable(ours Versions) error {
	newer := fmt.Sprintf("restore it with Karmada %s or a newer one", m.Karmada)
	switch {
	case m.Format < 1:
		return fmt.Errorf("%w: its manifest names no format", ErrDamaged)
	case m.Format > Format:
		return fmt.Errorf("%w: it has format %d, and the newest known is %d: %s", ErrForeign, m.Format, Format, newer)
	case !m.has(Snapshot):
		return fmt.Errorf("%w: it holds no snapshot of etcd", ErrDamaged)
	}
	for _, of := range []struct{ what, written, read string }{
		{"Kubernetes", m.Kubernetes, ours.Kubernetes}, {"etcd", m.Etcd, ours.Etcd},
	} {
		if err := checkVersion(of.what, of.written, of.read, newer); err != nil {
			return err
		}
	}
	return nil
}

func checkVersion(what, written, read, newer string) error {
	theirs, err := version.ParseGeneric(written)
	if err != nil {
		return fmt.Errorf("%w: reading which version of %s wrote it: %w", ErrDamaged, what, err)
	}
	ours, err := version.ParseGeneric(read)
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", what, err)
	}
	if theirs.Major() != ours.Major() {
		return fmt.Errorf("%w: it was written by %s %s, and this program has %s: restore it with a program that has %s %d", ErrForeign, what, written, read, what, theirs.Major())
	}
	if theirs.Minor() > ours.Minor() {
		return fmt.Errorf("%w: it was written by %s %s, and this program has %s: %s", ErrForeign, what, written, read, newer)
	}
	return nil
}
