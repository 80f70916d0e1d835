package processnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// programPrefix is how the names of all programs of Karmada begin.
const programPrefix = "karmada-"

// ProgramsVariable names more directories in which programs are looked for, in the
// form of $PATH.
const ProgramsVariable = "KARMADA_PROGRAMS"

// ProgramOf is the program that an image holds: the last element of its name
// without tag and digest. An image that is not Karmada's holds none that this node
// can run.
func ProgramOf(image string) (program string, ok bool) {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name, strings.HasPrefix(name, programPrefix) && len(name) > len(programPrefix)
}

// Runs reports whether a Pod of these images runs on such a node: all of them must
// be Karmada's.
func Runs(images ...string) bool {
	for _, image := range images {
		if _, ok := ProgramOf(image); !ok {
			return false
		}
	}
	return len(images) > 0
}

var (
	errNotOurs   = errors.New("this node runs images of Karmada only, whose names begin with " + programPrefix)
	errNoProgram = errors.New("no such program")
)

// Find looks for a program where this one is installed, then in the directories of
// $KARMADA_PROGRAMS, then in those of $PATH. The error tells where it looked.
func Find(program string) (path string, err error) {
	dirs := append(filepath.SplitList(os.Getenv(ProgramsVariable)), filepath.SplitList(os.Getenv("PATH"))...)
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	return findIn(program, dirs)
}

func findIn(program string, dirs []string) (path string, err error) {
	for _, dir := range dirs {
		if dir == "" || !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, program)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("looking for program %q in %s: %w: build it (`make build`), or name its directory in $%s before the start",
		program, strings.Join(dirs, ", "), errNoProgram, ProgramsVariable)
}
