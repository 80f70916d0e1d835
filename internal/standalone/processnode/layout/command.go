package layout

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Command is what a container runs, with everything resolved that differs on this
// machine.
type Command struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	// mounts are how other commands in the container are resolved.
	mounts Mounts
}

// Resolve turns what a container says into what is run here: in root unless a volume
// is its working directory. The first word of its command is the program of its
// image; it has no other.
func Resolve(program string, container *corev1.Container, env []corev1.EnvVar, m Mounts, address, root string) (Command, error) {
	values := map[string]string{}
	for _, variable := range env {
		values[variable.Name] = variable.Value
	}
	words := container.Args
	if len(container.Command) > 0 {
		name := filepath.Base(container.Command[0])
		if name != filepath.Base(program) {
			return Command{}, &exec.Error{Name: container.Command[0], Err: errors.New("its image is played by the program " + filepath.Base(program) + " alone: there is no other command in it")}
		}
		words = append(append([]string{}, container.Command[1:]...), container.Args...)
	}
	c := Command{Path: program, mounts: m, Dir: root}
	if container.WorkingDir != "" {
		if dir := m.rewrite(path.Clean(container.WorkingDir)); dir != path.Clean(container.WorkingDir) {
			c.Dir = dir
		}
	}
	for _, word := range words {
		c.Args = append(c.Args, narrowed(m.rewrite(expand(word, values)), address))
	}
	for _, variable := range env {
		c.Env = append(c.Env, variable.Name+"="+m.rewrite(variable.Value))
	}
	return c, nil
}

// ErrForeign says that only the program of the container runs in it.
var ErrForeign = errors.New("containers of this node are processes of its machine, in which no other command runs")

// Within returns the program of the container with other arguments. Any other command
// is refused: it would be a program of this machine.
func (c Command) Within(words []string) (Command, error) {
	own := filepath.Base(c.Path)
	if len(words) == 0 || filepath.Base(words[0]) != own {
		return Command{}, fmt.Errorf("running %q: %w: run %s with arguments, or read its files through the Secrets and ConfigMaps that they come from", strings.Join(words, " "), ErrForeign, own)
	}
	other := c
	other.Args = nil
	for _, word := range words[1:] {
		other.Args = append(other.Args, c.mounts.rewrite(word))
	}
	return other, nil
}
