package processnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// programPrefix is the prefix of the names of all programs in Programs.
const programPrefix = "karmada-"

// Programs returns the names of the programs that a node can run. Each name is also the last
// element of the name of an image. karmada-aggregated-apiserver is excluded, because it needs an
// etcd, and Pods must not use the etcd servers of this machine.
func Programs() []string {
	return []string{
		"karmada-agent", "karmada-controller-manager", "karmada-descheduler", "karmada-scheduler", "karmada-scheduler-estimator", "karmada-webhook",
	}
}

// ProgramsVariable is an environment variable with additional directories for programs, in
// the format of $PATH. The owner of the machine sets it before the start. Pods cannot set it.
const ProgramsVariable = "KARMADA_PROGRAMS"

// programName returns the last element of the name of an image, without tag and digest. The
// registry is ignored, because the image is never pulled: the installed program runs instead.
func programName(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// CanRun reports whether the node can run a Pod with these images, which requires that each image
// names a program of Programs.
func CanRun(images ...string) bool {
	for _, image := range images {
		if !slices.Contains(Programs(), programName(image)) {
			return false
		}
	}
	return len(images) > 0
}

var (
	errForeignImage    = errors.New("this node runs images of Karmada only: " + strings.Join(Programs(), ", ") + ", and no others")
	errProgramNotFound = errors.New("program not found")
	errReplaceable     = errors.New("other users can replace it")
)

// FindProgram searches a program in the directory of this program, then in the directories of
// $KARMADA_PROGRAMS. The error lists these directories.
func FindProgram(program string) (path string, err error) {
	dirs := filepath.SplitList(os.Getenv(ProgramsVariable))
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	return findProgramIn(program, dirs)
}

func findProgramIn(program string, dirs []string) (path string, err error) {
	for _, dir := range dirs {
		if dir == "" || !filepath.IsAbs(dir) || !filepath.IsLocal(program) {
			continue
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, program))
		if err != nil {
			continue
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		// A link to another version of the program is allowed, but not a link to another program.
		if name := filepath.Base(path); name != program && (!strings.HasPrefix(name, program+"-") || slices.Contains(Programs(), name)) {
			return "", fmt.Errorf("program %s is a link to %s: %w: install the program itself", filepath.Join(dir, program), path, errProgramNotFound)
		}
		if !isTrusted(info) {
			return "", fmt.Errorf("program %s: %w: the owner must be you or root, and the mode must not allow others to write (`chmod go-w %s`)", path, errReplaceable, path)
		}
		return path, nil
	}
	return "", fmt.Errorf("searching program %q in %s: %w: build it (`make build`), or add its directory to $%s before the start",
		program, strings.Join(dirs, ", "), errProgramNotFound, ProgramsVariable)
}

// isTrusted reports whether only this user and root can change a file. Write permission for the
// group of this user is allowed too, because many systems create a separate group for each user.
func isTrusted(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && int(stat.Uid) != os.Getuid() {
		return false
	}
	mode := info.Mode().Perm()
	return mode&0o002 == 0 && (mode&0o020 == 0 || int(stat.Gid) == os.Getgid())
}
