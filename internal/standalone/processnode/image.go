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

// Image is the name of the image that contains all programs. It is also the name of the file that
// contains them on this machine. This file selects a program by its argument 0.
const Image = "karmada"

// componentPrograms are the programs whose images and files have the same name.
func componentPrograms() []string {
	return []string{
		"karmada-agent", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-descheduler",
		"karmada-scheduler", "karmada-scheduler-estimator", "karmada-search", "karmada-webhook",
	}
}

// upstreamPrograms are the programs of other projects that the file Image contains. Their upstream images
// select the same programs.
func upstreamPrograms() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager"}
}

// Programs returns the names of the programs that a node can run.
func Programs() []string {
	return slices.Concat(componentPrograms(), upstreamPrograms(), []string{"karmada-apiserver", "karmadactl"})
}

// ProgramsVariable is an environment variable with additional directories for programs, in
// the format of $PATH. The owner of the machine sets it before the start. Pods cannot set it.
const ProgramsVariable = "KARMADA_PROGRAMS"

// imageName returns the last element of an image's name, without tag and digest. The registry is ignored,
// because the image is never pulled: the installed program runs instead.
func imageName(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Container is the part of a container that selects its program.
type Container struct {
	Image   string
	Command []string
}

// installedProgram is a program and the name of the file that contains it.
type installedProgram struct{ name, file string }

// program returns the program of a container. The image of one component needs no command. The
// other images need a command, because they contain several programs, or start another program
// without a command.
func (c Container) program() (installedProgram, error) {
	name := imageName(c.Image)
	if slices.Contains(componentPrograms(), name) {
		return installedProgram{name: name, file: name}, nil
	}
	if name != Image && !slices.Contains(upstreamPrograms(), name) {
		return installedProgram{}, fmt.Errorf("image %s: %w", c.Image, errForeignImage)
	}
	if len(c.Command) == 0 {
		return installedProgram{}, fmt.Errorf("image %s: %w", c.Image, errNoCommand)
	}
	program := filepath.Base(c.Command[0])
	if !slices.Contains(Programs(), program) || name != Image && name != program {
		return installedProgram{}, fmt.Errorf("image %s: command %q: %w", c.Image, c.Command[0], errForeignProgram)
	}
	return installedProgram{name: program, file: Image}, nil
}

// CanRun reports whether the node can run a Pod with these containers, which requires that each
// container selects a program of Programs.
func CanRun(containers ...Container) bool {
	for _, c := range containers {
		if _, err := c.program(); err != nil {
			return false
		}
	}
	return len(containers) > 0
}

var (
	errForeignImage = errors.New("this node runs images of Karmada only: " +
		strings.Join(slices.Concat([]string{Image}, componentPrograms(), upstreamPrograms()), ", ") + ", and no others")
	errNoCommand       = errors.New("the command is missing: its first word selects the program: " + strings.Join(Programs(), ", "))
	errForeignProgram  = errors.New("there is no other command in the image: use " + strings.Join(Programs(), ", "))
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
		// A link to another version of the program, or to the file with all programs, is allowed, but
		// not a link to another program.
		if name := filepath.Base(path); name != program && name != Image &&
			(!strings.HasPrefix(name, program+"-") || slices.Contains(Programs(), name)) {
			return "", fmt.Errorf("program %s is a link to %s: %w: install the program itself", filepath.Join(dir, program), path,
				errProgramNotFound)
		}
		if !isTrusted(info) {
			return "", fmt.Errorf("program %s: %w: the owner must be you or root, and the mode must not allow others to write (`chmod go-w %s`)",
				path, errReplaceable, path)
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
