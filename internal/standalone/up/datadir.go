package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
func (d dataDir) member(name string) string { return filepath.Join(d.path, "members", name) }
func (d dataDir) karmadaConfig() string     { return filepath.Join(d.path, "karmada-apiserver.config") }
func (d dataDir) membersConfig() string     { return filepath.Join(d.path, "members.config") }
func (d dataDir) logFile(name string) string {
	return filepath.Join(d.path, "logs", name+".log")
}

// create makes the directories; only their owner may look into them, for they
// hold keys.
func (d dataDir) create() error {
	if err := os.MkdirAll(filepath.Join(d.path, "logs"), 0o700); err != nil {
		return fmt.Errorf("creating data directory: %w", err)
	}
	return nil
}

// errInUse tells that another process holds the lock of a data directory.
var errInUse = errors.New("another karmada runs on it")

// lock takes the directory for this process. The kernel lets go of it when the
// process ends, however it ends.
func (d dataDir) lock() (release func(), err error) {
	file, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock of data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid := d.holder()
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s: %w (process %d): stop it with `karmada down --data-dir %s`, or choose another --data-dir",
				d.path, errInUse, pid, d.path)
		}
		return nil, fmt.Errorf("locking data directory %s: %w", d.path, err)
	}
	if err := file.Truncate(0); err != nil {
		return nil, fmt.Errorf("writing lock of data directory: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return nil, fmt.Errorf("writing lock of data directory: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// holder is the process that wrote the lock last, 0 if none did.
func (d dataDir) holder() int {
	data, err := os.ReadFile(d.lockFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// running returns the process that holds the lock, 0 if nobody does.
func (d dataDir) running() (int, error) {
	file, err := os.Open(d.lockFile())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("opening lock of data directory: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return d.holder(), nil
	}
	return 0, err
}

// busy returns a process that holds the directory or that of a member, 0 if none does.
func (d dataDir) busy() (int, error) {
	members, err := filepath.Glob(d.member("*"))
	if err != nil {
		return 0, fmt.Errorf("listing directories of members: %w", err)
	}
	for _, path := range append([]string{d.path}, members...) {
		if pid, err := (dataDir{path}).running(); pid != 0 || err != nil {
			return pid, err
		}
	}
	return 0, nil
}

// state is what a second `karmada up` must know of the first.
type state struct {
	// Ports are the ports chosen for each server.
	Ports map[string]int `json:"ports"`
	// Members are the simulated member clusters.
	Members []string `json:"members,omitempty"`
	// Pull are those of them that an agent serves. A member that is registered stays
	// as it is.
	Pull []string `json:"pull,omitempty"`
	// Registering are those of them whose registration has begun and not ended, each
	// with the ID of its token.
	Registering map[string]string `json:"registering,omitempty"`
	// NodesPerMember is how many simulated nodes each has.
	NodesPerMember int `json:"nodesPerMember,omitempty"`
}

// readState reads what an earlier start wrote; a new directory has none.
func (d dataDir) readState() (state, error) {
	s := state{Ports: map[string]int{}}
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading state of data directory: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading %s: %w: remove the file to choose new ports, or the directory to start over", d.stateFile(), err)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

func (d dataDir) writeState(s state) error { return writeJSON(d.stateFile(), s) }

// process is a process of the installation.
type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

func (d dataDir) writeProcesses(processes []process) error {
	return writeJSON(d.processesFile(), processes)
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	next := path + ".new"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// openLog opens a log file and keeps the one before it as .old, so that logs of
// a long-lived directory stay bounded by the length of two runs.
func (d dataDir) openLog(name string) (*os.File, error) {
	path := d.logFile(name)
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keeping the last log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	return file, nil
}
