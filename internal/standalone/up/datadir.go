package up

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// dataDir is the directory that holds everything of one local installation.
type dataDir struct{ path string }

// defaultDataDir is where `karmada up` keeps its data unless told otherwise.
func defaultDataDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ".karmada"
	}
	return filepath.Join(home, ".karmada")
}

func (d dataDir) lockFile() string          { return filepath.Join(d.path, "lock") }
func (d dataDir) stateFile() string         { return filepath.Join(d.path, "state.json") }
func (d dataDir) processesFile() string     { return filepath.Join(d.path, "processes.json") }
func (d dataDir) controlPlane() string      { return filepath.Join(d.path, "control-plane") }
func (d dataDir) members() string           { return filepath.Join(d.path, "members") }
func (d dataDir) member(name string) string { return filepath.Join(d.members(), name) }
func (d dataDir) karmadaConfig() string     { return filepath.Join(d.path, "karmada-apiserver.config") }
func (d dataDir) membersConfig() string     { return filepath.Join(d.path, "members.config") }
func (d dataDir) logs() string              { return filepath.Join(d.path, "logs") }
func (d dataDir) audit() string             { return filepath.Join(d.path, "audit") }

// dataDirOfMember is the data directory in which a member has its directory.
func dataDirOfMember(path string) dataDir { return dataDir{filepath.Dir(filepath.Dir(path))} }

// startOver says how to go on when the key of the control plane is lost.
func (d dataDir) startOver() string {
	return fmt.Sprintf("start over with `karmada down --purge --force --data-dir %s` and join the clusters again", d.path)
}

// startOverMember says how to go on when the key of a member is lost: the control plane
// and the other members stay.
func (d dataDir) startOverMember(name string) string {
	return fmt.Sprintf("start over with this member alone: run `karmada down --data-dir %[1]s`, remove %[2]s, and run `karmada up --join=false --data-dir %[1]s`. "+
		"Remove its Cluster with `karmadactl unjoin %[3]s --force`, or in pull mode with `karmadactl unregister %[3]s --force --cluster-kubeconfig=%[4]s --karmada-config=%[5]s`. "+
		"Then run `karmada down --data-dir %[1]s` and `karmada up --join --data-dir %[1]s`", d.path, d.member(name), name, d.membersConfig(), d.karmadaConfig())
}

// beforeRestore and a time are added to the name of a control plane that a restore
// replaced.
const beforeRestore = ".before-restore-"

// replaced are the directories of control planes that a restore replaced.
func (d dataDir) replaced() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("looking into data directory: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(d.controlPlane())+beforeRestore) {
			found = append(found, filepath.Join(d.path, entry.Name()))
		}
	}
	return found, nil
}

// staging is where a restore makes the data that it puts into its place at the end.
func (d dataDir) staging() string            { return filepath.Join(d.path, "restore.new") }
func (d dataDir) logFile(name string) string { return filepath.Join(d.logs(), name+".log") }

// dataDirOf is the directory that a flag names.
func dataDirOf(path string) (dataDir, error) {
	if path == "" {
		return dataDir{}, Wrong(errors.New("--data-dir is empty: name a directory, or leave the flag out for " + defaultDataDir()))
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return dataDir{}, fmt.Errorf("finding data directory: %w", err)
	}
	return dataDir{absolute}, nil
}

// create makes the directories; only their owner may look into them, for they
// hold keys. A directory of somebody else's files is not taken.
func (d dataDir) create() error {
	switch entries, err := os.ReadDir(d.path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("looking into data directory: %w: name another with --data-dir", err)
	default:
		if other := d.foreign(entries); other != "" {
			return fmt.Errorf("data directory %s holds other files, such as %s: name an empty or a new one with --data-dir", d.path, other)
		}
	}
	if err := os.MkdirAll(d.logs(), 0o700); err != nil {
		return fmt.Errorf("creating data directory: %w: name one with --data-dir in which you may write", err)
	}
	return d.close()
}

// close takes a directory away from all other users: one that was there before may be
// open to them.
func (d dataDir) close() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("looking at data directory: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("data directory %s belongs to another user, who could read its keys: name another with --data-dir", d.path)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(d.path, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("closing data directory to other users: %w", err)
	}
	return nil
}

// contents are what a data directory may hold. What tells that it is one comes last,
// so that its removal can be interrupted.
func (d dataDir) contents() ([]string, error) {
	replaced, err := d.replaced()
	return append(replaced,
		d.staging(), d.members(), d.controlPlane(), d.logs(), d.audit(), d.karmadaConfig(), d.membersConfig(), d.processesFile(), d.lockFile(), d.stateFile()), err
}

// foreign names a file in a directory that no start of ours can have left there, empty
// if there is none or the directory is ours.
func (d dataDir) foreign(entries []os.DirEntry) string {
	// A start that was cut short leaves these, as others may.
	begun := []string{filepath.Base(d.logs()), filepath.Base(d.lockFile()), filepath.Base(d.stateFile()) + unfinished, filepath.Base(d.staging())}
	marks := []string{filepath.Base(d.stateFile()), filepath.Base(d.controlPlane()), filepath.Base(d.karmadaConfig())}
	other := ""
	for _, entry := range entries {
		switch name := entry.Name(); {
		case slices.Contains(marks, name):
			return ""
		case !slices.Contains(begun, name):
			other = name
		}
	}
	return other
}

var errNotOurs = errors.New("it holds no Karmada data")

// remove deletes what a data directory holds of ours, and the directory if there is
// nothing else in it; what else there is stays and is returned. allowed is asked before
// and may refuse. Nobody can start on the directory meanwhile.
func (d dataDir) remove(allowed func() error) (others []string, err error) {
	if _, err := os.Stat(d.stateFile()); err != nil {
		return nil, fmt.Errorf("not removing %s: %w", d.path, errNotOurs)
	}
	release, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := allowed(); err != nil {
		return nil, err
	}
	contents, err := d.contents()
	if err != nil {
		return nil, err
	}
	for _, path := range contents {
		if err := errors.Join(os.RemoveAll(path+unfinished), os.RemoveAll(path)); err != nil {
			return nil, fmt.Errorf("removing %s: %w", d.path, err)
		}
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("removing %s: %w", d.path, err)
	}
	for _, entry := range entries {
		others = append(others, entry.Name())
	}
	if len(others) > 0 {
		return others, nil
	}
	if err := os.Remove(d.path); err != nil {
		return nil, fmt.Errorf("removing %s: %w", d.path, err)
	}
	return nil, nil
}
