package up

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// maxUserInstances is the kernel parameter that limits the number of one user's inotify instances.
const maxUserInstances = "fs.inotify.max_user_instances"

// inotifyInstances is the number of inotify instances that the control plane and each member need.
const inotifyInstances = 2

// verifyInotifyLimits returns an error if the user has fewer free inotify instances than needed.
// Programs use inotify to watch files. Without a free instance, they fail with "too many open files".
// verifyInotifyLimits returns nil on systems without /proc, and if the number of instances cannot be
// read.
func verifyInotifyLimits(needed int) error {
	return verifyInotifyLimitsOf("/proc", os.Getuid(), needed)
}

func verifyInotifyLimitsOf(proc string, uid, needed int) error {
	text, err := os.ReadFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"))
	if err != nil {
		return nil //nolint:nilerr // the system has no such limit
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil //nolint:nilerr // the limit is not known
	}
	used := countInotify(proc, uid)
	if used+needed <= limit {
		return nil
	}
	return fmt.Errorf("%s is %d, and processes of user %s use %d instances, so %d more are not available: "+
		"raise the limit with `sudo sysctl %s=%d`, or stop programs that watch files, such as editors",
		maxUserInstances, limit, userName(uid), used, needed, maxUserInstances, max(1024, 2*(used+needed)))
}

// countInotify returns the number of inotify instances in all of a user's processes. Processes whose
// files cannot be read are not counted.
func countInotify(proc string, uid int) (count int) {
	processes, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return 0
	}
	for _, process := range processes {
		if !isOwnedBy(process, uid) {
			continue
		}
		directory := filepath.Join(process, "fd")
		files, err := os.ReadDir(directory)
		if err != nil {
			continue // the process has ended
		}
		for _, file := range files {
			if target, err := os.Readlink(filepath.Join(directory, file.Name())); err == nil && strings.HasSuffix(target, "inotify") {
				count++
			}
		}
	}
	return count
}

// isOwnedBy reports whether the process belongs to the user. In the process's status, the first number
// in the line Uid is the real user ID.
func isOwnedBy(process string, uid int) bool {
	status, err := os.ReadFile(filepath.Join(process, "status"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	fields := strings.Fields(rest)
	return len(fields) > 0 && fields[0] == strconv.Itoa(uid)
}

func userName(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return found.Username
	}
	return strconv.Itoa(uid)
}
