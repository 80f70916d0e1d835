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
)

// errInUse tells that another process holds the lock of a data directory.
var errInUse = errors.New("another karmada runs on it")

// lock takes the directory for this process. The kernel lets go of it when the
// process ends, however it ends.
func (d dataDir) lock() (release func(), err error) {
	file, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock of data directory: %w", err)
	}
	if err := takeLock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, d.inUse(d.holder())
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

func (d dataDir) inUse(pid int) error {
	return fmt.Errorf("data directory %s: %w (process %d): stop it with `%s`, or choose another --data-dir",
		d.path, errInUse, pid, d.howToStop())
}

// howToStop is what to type to stop whoever uses the directory: the program as it was
// called, which need not be in anybody's PATH.
func (d dataDir) howToStop() string { return os.Args[0] + " down --data-dir " + d.path }

// unused tells who uses the directory, and leaves its logs to that process.
func (d dataDir) unused() error {
	pid, err := d.running()
	if pid != 0 {
		return d.inUse(pid)
	}
	return err
}

const (
	// lookLimit is how long whoever only looks at a lock may keep it from others, and
	// how long its holder may take to write down who it is.
	lookLimit = time.Second
	lookPause = 5 * time.Millisecond
)

// takeLock takes the lock unless somebody holds it. Those who look whether somebody
// does have it for a moment, and are waited for.
func takeLock(file *os.File) error {
	fd := int(file.Fd())
	var refused error
	err := look(func() (bool, error) {
		refused = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(refused, syscall.EWOULDBLOCK) {
			return true, nil
		}
		if held(fd) {
			return true, nil
		}
		return false, syscall.Flock(fd, syscall.LOCK_UN)
	})
	if err == nil || wait.Interrupted(err) {
		return refused
	}
	return err
}

// held tells that somebody has the lock, and not only looks at it as this does.
func held(fd int) bool { return syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) != nil }

// look asks again and again until it is answered, for a moment.
func look(answered func() (bool, error)) error {
	return wait.PollUntilContextTimeout(context.Background(), lookPause, lookLimit, true,
		func(context.Context) (bool, error) { return answered() })
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

var errNobody = errors.New("it is in use by a process that has not said which: try again")

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
	pid := 0
	err = look(func() (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return true, err
		}
		// Between taking the lock and writing it, the file names a process of before,
		// whose number may be anybody's by now.
		wrote := d.holder()
		if !d.opened(wrote) {
			return false, nil
		}
		pid = wrote
		return true, nil
	})
	switch {
	case wait.Interrupted(err):
		return 0, fmt.Errorf("data directory %s: %w", d.path, errNobody)
	case err != nil:
		return 0, fmt.Errorf("looking at lock of data directory: %w", err)
	}
	return pid, nil
}

// opened reports whether a process has the file of the lock open.
func (d dataDir) opened(pid int) bool {
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
