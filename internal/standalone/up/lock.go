package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"karmada.io/karmada/internal/console"
)

// errInUse means that another process holds the data directory's lock.
var errInUse = errors.New("another karmada process uses it")

// lock locks the directory for this process. The kernel releases the lock when the process ends, even
// if the process is killed.
func (d dataDir) lock(ctx context.Context) (release func(), err error) {
	file, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the data directory: %w", err)
	}
	if err := acquireLock(ctx, file); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, d.inUseError(d.recordedHolder())
		}
		return nil, fmt.Errorf("locking data directory %s: %w", d.path, err)
	}
	if err := file.Truncate(0); err != nil {
		return nil, fmt.Errorf("writing the lock of the data directory: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return nil, fmt.Errorf("writing the lock of the data directory: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

func (d dataDir) inUseError(pid int) error {
	return fmt.Errorf("data directory %s: %w (process %d): stop it with `%s`, or choose another --data-dir",
		d.path, errInUse, pid, d.stopCommand())
}

// stopCommand returns the command that stops the process that uses the directory. The command begins
// with the program as the user called it, because the program may not be in $PATH.
func (d dataDir) stopCommand() string {
	return console.ShellWord(os.Args[0]) + " down --data-dir " + d.quoted()
}

// ensureUnused returns an error if a process uses the directory. It must be called before logs are
// opened, because the logs belong to that process.
func (d dataDir) ensureUnused(ctx context.Context) error {
	pid, err := d.runningProcess(ctx)
	if pid != 0 {
		return d.inUseError(pid)
	}
	return err
}

const (
	// lockProbeTimeout is how long a process that only probes the lock may hold it, and how long the
	// holder may take to write its process ID.
	lockProbeTimeout  = time.Second
	lockProbeInterval = 5 * time.Millisecond
)

// acquireLock acquires the lock unless another process holds it. It waits for a process that only
// probes the lock, because such a process holds the lock only for a moment.
func acquireLock(ctx context.Context, file *os.File) error {
	fd := int(file.Fd())
	var lockErr error
	err := pollLock(ctx, func() (bool, error) {
		lockErr = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(lockErr, syscall.EWOULDBLOCK) {
			return true, nil
		}
		if isLocked(fd) {
			return true, nil
		}
		return false, syscall.Flock(fd, syscall.LOCK_UN)
	})
	if err == nil || wait.Interrupted(err) && ctx.Err() == nil {
		return lockErr
	}
	return err
}

// isLocked reports whether another process holds the lock exclusively. A process that only probes the
// lock does not count.
func isLocked(fd int) bool { return syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) != nil }

// pollLock calls done until it returns true, ctx ends or lockProbeTimeout is over.
func pollLock(ctx context.Context, done func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, lockProbeInterval, lockProbeTimeout, true,
		func(context.Context) (bool, error) { return done() })
}

// recordedHolder returns the process ID in the lock file, or 0 if there is none.
func (d dataDir) recordedHolder() int {
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

var errUnknownHolder = errors.New("it is locked by a process that has not written its process ID yet: retry")

// runningProcess returns the ID of the process that holds the lock, or 0 if there is none.
func (d dataDir) runningProcess(ctx context.Context) (int, error) {
	file, err := os.Open(d.lockFile())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("opening the lock of the data directory: %w", err)
	}
	defer func() { _ = file.Close() }()
	pid := 0
	err = pollLock(ctx, func() (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return true, err
		}
		// Until the new holder has written its process ID, the lock file contains an earlier holder's
		// ID, which may now be the ID of an unrelated process.
		recorded := d.recordedHolder()
		if !d.hasLockOpen(recorded) {
			return false, nil
		}
		pid = recorded
		return true, nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		return 0, fmt.Errorf("data directory %s: %w", d.path, errUnknownHolder)
	case err != nil:
		return 0, fmt.Errorf("reading the lock of the data directory: %w", err)
	}
	return pid, nil
}

// hasLockOpen reports whether the process has opened the lock file.
func (d dataDir) hasLockOpen(pid int) bool {
	if pid == 0 {
		return false
	}
	lock, err := filepath.EvalSymlinks(d.lockFile())
	if err != nil {
		return false
	}
	links := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(links)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(file os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(links, file.Name()))
		return err == nil && target == lock
	})
}

// busyProcess returns the ID of a process that holds the lock of the directory or of one of its
// members, or 0 if there is none.
func (d dataDir) busyProcess(ctx context.Context) (int, error) {
	members, err := filepath.Glob(d.memberDir("*"))
	if err != nil {
		return 0, fmt.Errorf("listing the directories of members: %w", err)
	}
	for _, path := range append([]string{d.path}, members...) {
		if pid, err := (dataDir{path}).runningProcess(ctx); pid != 0 || err != nil {
			return pid, err
		}
	}
	return 0, nil
}
