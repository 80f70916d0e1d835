package processnode

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confinement lists the files that a process may use. The kernel enforces the confinement with
// Landlock, for the process and all its descendants. The zero value confines nothing.
type confinement struct {
	// Program is the only file that the process may execute.
	Program string
	// Read lists files and directories that the process may read. A directory includes everything
	// in it. Paths that do not exist are ignored.
	Read []string
	// Write lists directories in which the process may read, change, create and remove files,
	// but not execute them.
	Write []string
}

// isConfinementSupported reports whether the kernel of this machine can enforce a
// Confinement.
func isConfinementSupported() bool { return landlockVersion() > 0 }

// landlockVersion returns the version of Landlock in the kernel, or 0 without Landlock.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version) // a small number
}

// Access permissions of Landlock, grouped by the purpose of a rule.
const (
	rightReadFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	rightExecute   = unix.LANDLOCK_ACCESS_FS_EXECUTE | rightReadFile
	rightRead      = rightReadFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightWriteFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightWrite     = rightRead | rightWriteFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	rightDevices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// fileRights are the permissions that a rule for a file, not a directory, may grant.
	fileRights = rightExecute | rightWriteFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handledRights returns the access permissions that a version of Landlock can restrict. An access
// right that is handled is denied unless a rule grants it.
func handledRights(version int) uint64 {
	rights := uint64(rightExecute | rightWrite | rightDevices)
	for since, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	} {
		if version < since {
			rights &^= right
		}
	}
	return rights
}

// minScopesVersion is the first version of Landlock that can restrict signals and abstract unix
// sockets.
const minScopesVersion = 6

var errNoLandlock = errors.New("the kernel has no Landlock")

// restrict confines the calling thread and the processes that the thread starts. The confinement
// cannot be undone, so the thread must end afterwards.
func (c confinement) restrict() (err error) {
	version := landlockVersion()
	if version == 0 {
		return errNoLandlock
	}
	attributes := unix.LandlockRulesetAttr{Access_fs: handledRights(version)}
	if version >= minScopesVersion {
		attributes.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	created, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return fmt.Errorf("creating a Landlock ruleset: %w", errno)
	}
	ruleset := int(created) // a file descriptor
	defer func() { err = errors.Join(err, unix.Close(ruleset)) }()
	for _, group := range []struct {
		paths  []string
		rights uint64
	}{
		{[]string{c.Program}, rightExecute}, {[]string{os.DevNull}, rightReadFile | rightWriteFile}, {c.Read, rightRead}, {c.Write, rightWrite},
	} {
		for _, path := range group.paths {
			if err := addRule(ruleset, path, group.rights&attributes.Access_fs); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, created, 0, 0); errno != 0 {
		return fmt.Errorf("confining a thread by Landlock: %w", errno)
	}
	return nil
}

// addRule adds a rule that grants permissions to a file, or to a directory and everything in it.
func addRule(ruleset int, path string, rights uint64) error {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // the process cannot use the path either
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = unix.Close(file) }()
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return fmt.Errorf("reading the mode of %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights,
		Parent_fd: int32(file)} // a file descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)),
		0, 0, 0) // a file descriptor
	if errno != 0 {
		return fmt.Errorf("adding a Landlock rule for %s: %w", path, errno)
	}
	return nil
}
