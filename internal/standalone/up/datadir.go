package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"karmada.io/karmada/internal/console"
)

// dataDir is the directory that contains all of one installation's data.
type dataDir struct{ path string }

func defaultDataDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ".karmada"
	}
	return filepath.Join(home, ".karmada")
}

// quoted returns the path in the form that a shell command in a message needs.
func (d dataDir) quoted() string { return console.ShellWord(d.path) }

func (d dataDir) lockFile() string             { return filepath.Join(d.path, "lock") }
func (d dataDir) stateFile() string            { return filepath.Join(d.path, "state.json") }
func (d dataDir) processesFile() string        { return filepath.Join(d.path, "processes.json") }
func (d dataDir) controlPlaneDir() string      { return filepath.Join(d.path, "control-plane") }
func (d dataDir) membersDir() string           { return filepath.Join(d.path, "members") }
func (d dataDir) memberDir(name string) string { return filepath.Join(d.membersDir(), name) }
func (d dataDir) karmadaKubeconfig() string    { return filepath.Join(d.path, "karmada-apiserver.config") }
func (d dataDir) membersKubeconfig() string    { return filepath.Join(d.path, "members.config") }
func (d dataDir) estimatorsDir() string        { return filepath.Join(d.path, "estimators") }
func (d dataDir) logsDir() string              { return filepath.Join(d.path, "logs") }
func (d dataDir) changesTokenFile() string     { return filepath.Join(d.path, "changes.token") }
func (d dataDir) auditDir() string             { return filepath.Join(d.path, "audit") }

// dataDirOfMember returns the data directory that contains the given member directory.
func dataDirOfMember(path string) dataDir { return dataDir{filepath.Dir(filepath.Dir(path))} }

// startOverAdvice returns advice for a user who lost the control plane's encryption key.
func (d dataDir) startOverAdvice() string {
	return fmt.Sprintf("start over with `karmada down --purge --force --data-dir %s` and join the clusters again", d.quoted())
}

// startOverMemberAdvice returns advice for a user who lost a member's encryption key. The control plane
// and the other members are kept.
func (d dataDir) startOverMemberAdvice(name string) string {
	return fmt.Sprintf("start over with this member only: run `karmada down --data-dir %[1]s`, remove %[2]s, and run `karmada up --join=false --data-dir %[1]s`. "+
		"Remove its Cluster with `karmadactl unjoin %[3]s --force`, or in pull mode with `karmadactl unregister %[3]s --force --cluster-kubeconfig=%[4]s --karmada-config=%[5]s`. "+
		"Then run `karmada down --data-dir %[1]s` and `karmada up --join --data-dir %[1]s`", d.quoted(), console.ShellWord(d.memberDir(name)),
		name, console.ShellWord(d.membersKubeconfig()), console.ShellWord(d.karmadaKubeconfig()))
}

// replacedInfix and a time are appended to the name of a control plane's directory when a restore
// replaces it.
const replacedInfix = ".before-restore-"

// replacedControlPlanes returns the directories of control planes that a restore replaced.
func (d dataDir) replacedControlPlanes() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("reading the data directory: %w", err)
	}
	var dirs []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(d.controlPlaneDir())+replacedInfix) {
			dirs = append(dirs, filepath.Join(d.path, entry.Name()))
		}
	}
	return dirs, nil
}

// restoreStagingDir returns the directory in which a restore prepares the new data.
func (d dataDir) restoreStagingDir() string  { return filepath.Join(d.path, "restore.new") }
func (d dataDir) logFile(name string) string { return filepath.Join(d.logsDir(), name+".log") }

// parseDataDir returns the data directory for a value of --data-dir.
func parseDataDir(path string) (dataDir, error) {
	if path == "" {
		return dataDir{}, NewUsageError(errors.New("--data-dir is empty: set a directory, or omit the flag to use " + defaultDataDir()))
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return dataDir{}, fmt.Errorf("resolving the data directory: %w", err)
	}
	return dataDir{absolute}, nil
}

// create creates the directories. Only their owner can read them, because they contain keys. create
// returns an error if the directory contains other programs' files.
func (d dataDir) create() error {
	switch entries, err := os.ReadDir(d.path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("reading the data directory: %w: choose another --data-dir", err)
	default:
		if other := d.foreignFile(entries); other != "" {
			return fmt.Errorf("data directory %s contains other files, such as %s: choose an empty or a new one with --data-dir", d.path, other)
		}
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("creating the data directory: %w: choose a writable --data-dir", err)
	}
	if err := d.restrictAccess(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.logsDir(), 0o700); err != nil {
		return fmt.Errorf("creating the directory of the logs: %w: choose a writable --data-dir", err)
	}
	return nil
}

// restrictAccess removes other users' permissions on the directory, which they may have if the
// directory existed before. If other users could write to the directory, it must be empty, because they
// may have put a certificate authority into it whose key they have.
func (d dataDir) restrictAccess() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("reading the mode of the data directory: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("data directory %s belongs to another user, who could read its keys: choose another --data-dir", d.path)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(d.path, 0o700); err != nil { // a directory
		return fmt.Errorf("restricting access to the data directory: %w", err)
	}
	if info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	// From now on, other users cannot add files.
	entries, err := os.ReadDir(d.path)
	if err == nil && len(entries) == 0 {
		return nil
	}
	// Restore the permissions, so that the next start does not accept the files either.
	err = errors.Join(err, os.Chmod(d.path, info.Mode().Perm()))
	return errors.Join(fmt.Errorf("other users can write to data directory %[1]s, which is not empty, so its keys may be theirs: "+
		"choose another --data-dir, or check that every file in it is yours and run `chmod 700 %[1]s`", d.path), err)
}

// contents returns the paths that a data directory may contain. The state file, which identifies the
// directory, is last, so that an interrupted removal can be repeated.
func (d dataDir) contents() ([]string, error) {
	replaced, err := d.replacedControlPlanes()
	return append(replaced,
		d.restoreStagingDir(), d.membersDir(), d.controlPlaneDir(), d.estimatorsDir(), d.logsDir(), d.auditDir(), d.karmadaKubeconfig(),
		d.membersKubeconfig(), d.processesFile(), d.changesTokenFile(), filepath.Join(d.path, changesSocket), d.lockFile(), d.stateFile()), err
}

// foreignFile returns the name of a file that Karmada never creates. It returns an empty string if
// there is none, or if the directory is a Karmada data directory.
func (d dataDir) foreignFile(entries []os.DirEntry) string {
	// An interrupted start creates these files, but other programs may create them too.
	ambiguousNames := []string{filepath.Base(d.logsDir()), filepath.Base(d.lockFile()), filepath.Base(d.stateFile()) + unfinishedSuffix,
		filepath.Base(d.restoreStagingDir())}
	identifyingNames := []string{filepath.Base(d.stateFile()), filepath.Base(d.controlPlaneDir()), filepath.Base(d.karmadaKubeconfig())}
	other := ""
	for _, entry := range entries {
		switch name := entry.Name(); {
		case slices.Contains(identifyingNames, name):
			return ""
		case !slices.Contains(ambiguousNames, name):
			other = name
		}
	}
	return other
}

var errNoKarmadaData = errors.New("it contains no Karmada data")

// remove deletes Karmada's files in the data directory, and deletes the directory if it is then empty.
// It keeps other files and returns their names. remove first calls checkAllowed, which may reject the
// removal. No process can start on the directory in the meantime.
func (d dataDir) remove(ctx context.Context, checkAllowed func() error) (others []string, err error) {
	if _, err := os.Stat(d.stateFile()); err != nil {
		return nil, fmt.Errorf("not removing %s: %w", d.path, errNoKarmadaData)
	}
	release, err := d.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := checkAllowed(); err != nil {
		return nil, err
	}
	contents, err := d.contents()
	if err != nil {
		return nil, err
	}
	for _, path := range contents {
		if err := errors.Join(os.RemoveAll(path+unfinishedSuffix), os.RemoveAll(path)); err != nil {
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
