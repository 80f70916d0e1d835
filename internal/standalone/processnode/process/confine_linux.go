package process

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confinement lists the files that a process may use. The kernel enforces it by
// Landlock, for the process and everything that it starts. The zero value confines
// nothing.
type Confinement struct {
	// Program is the only file that may be executed.
	Program string
	// Read lists files and directories that may be read, with all that they hold.
	// Those that do not exist are left out.
	Read []string
	// Write lists directories in which files may be read, changed, created and
	// removed, but not executed.
	Write []string
}

// Confines reports whether the kernel of this machine enforces a Confinement.
func Confines() bool { return landlockVersion() > 0 }

// landlockVersion returns the version of Landlock in the kernel, 0 without Landlock.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version) //nolint:gosec // a small number
}

// What a rule can allow, by kind.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	execute   = unix.LANDLOCK_ACCESS_FS_EXECUTE | readFile
	read      = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	write     = read | writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// onFiles are the rights that a rule for something else than a directory may allow.
	onFiles = execute | writeFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handledRights returns the rights that a version of Landlock knows: what is handled
// and not allowed by a rule is refused.
func handledRights(version int) uint64 {
	rights := uint64(execute | write | devices)
	for since, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	} {
		if version < since {
			rights &^= right
		}
	}
	return rights
}

// scopesSince is the version of Landlock that keeps signals and abstract sockets
// within a confinement.
const scopesSince = 6

var errNoLandlock = errors.New("the kernel has no Landlock")

// restrict confines the calling thread, and the processes that it starts. That cannot
// be undone: the thread must end afterwards.
func (c Confinement) restrict() (err error) {
	version := landlockVersion()
	if version == 0 {
		return errNoLandlock
	}
	attributes := unix.LandlockRulesetAttr{Access_fs: handledRights(version)}
	if version >= scopesSince {
		attributes.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	created, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return fmt.Errorf("creating a Landlock ruleset: %w", errno)
	}
	rules := int(created) //nolint:gosec // a file descriptor
	defer func() { err = errors.Join(err, unix.Close(rules)) }()
	for _, each := range []struct {
		paths  []string
		rights uint64
	}{
		{[]string{c.Program}, execute}, {[]string{os.DevNull}, readFile | writeFile}, {c.Read, read}, {c.Write, write},
	} {
		for _, path := range each.paths {
			if err := allow(rules, path, each.rights&attributes.Access_fs); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, created, 0, 0); errno != 0 {
		return fmt.Errorf("confining a thread by Landlock: %w", errno)
	}
	return nil
}

// allow adds a rule for a file or for all below a directory.
func allow(rules int, path string, rights uint64) error {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // the process cannot use it, either
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = unix.Close(file) }()
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(file)}                                                               //nolint:gosec // a file descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // a file descriptor
	if errno != 0 {
		return fmt.Errorf("adding a Landlock rule for %s: %w", path, errno)
	}
	return nil
}
