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

// programPrefix begins the names of all programs in Programs.
const programPrefix = "karmada-"

// Programs lists the programs that a node runs, which are also the last elements of
// the names of their images. The server of the Cluster API is not among them: it
// would have to reach an etcd, and those of this machine are not for Pods.
func Programs() []string {
	return []string{"karmada-agent", "karmada-controller-manager", "karmada-scheduler", "karmada-webhook"}
}

// ProgramsVariable names more directories in which programs are looked for, in the
// form of $PATH. The owner of the machine sets it before the start; Pods cannot.
const ProgramsVariable = "KARMADA_PROGRAMS"

// programOf returns the last element of the name of an image, without tag and digest.
// The registry does not matter: the image is never pulled, and the program is the
// installed one.
func programOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Runs reports whether a Pod of these images runs on such a node: the program of each
// must be in Programs.
func Runs(images ...string) bool {
	for _, image := range images {
		if !slices.Contains(Programs(), programOf(image)) {
			return false
		}
	}
	return len(images) > 0
}

var (
	errNotOurs   = errors.New("this node runs images of Karmada only: " + strings.Join(Programs(), ", ") + ", and no others")
	errNoProgram = errors.New("no such program")
	errWritable  = errors.New("other users may replace it")
)

// Find looks for a program where this one is installed, then in the directories of
// $KARMADA_PROGRAMS. The error lists these directories.
func Find(program string) (path string, err error) {
	dirs := filepath.SplitList(os.Getenv(ProgramsVariable))
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	return findIn(program, dirs)
}

func findIn(program string, dirs []string) (path string, err error) {
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
		// A link may lead to another version of the program, not to another program.
		if name := filepath.Base(path); name != program && !strings.HasPrefix(name, program+"-") {
			return "", fmt.Errorf("program %s is a link to %s: %w: install the program itself", filepath.Join(dir, program), path, errNoProgram)
		}
		if !trusted(info) {
			return "", fmt.Errorf("program %s: %w: its owner must be you or root, and its mode must not let others write (`chmod go-w %s`)", path, errWritable, path)
		}
		return path, nil
	}
	return "", fmt.Errorf("looking for program %q in %s: %w: build it (`make build`), or name its directory in $%s before the start",
		program, strings.Join(dirs, ", "), errNoProgram, ProgramsVariable)
}

// trusted reports whether no user but this one and root may change a file. The group
// of this user may: many systems give each user a group of their own.
func trusted(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && int(stat.Uid) != os.Getuid() {
		return false
	}
	mode := info.Mode().Perm()
	return mode&0o002 == 0 && (mode&0o020 == 0 || int(stat.Gid) == os.Getgid())
}
