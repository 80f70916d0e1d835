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

// Program is the program of an image. Its name is that by which images and commands name
// it, also where the path ends in another one, such as that of a version.
type Program struct{ Name, Path string }

// Command is what a container runs, with everything resolved that differs on this
// machine.
type Command struct {
	Program
	Args []string
	Env  []string
	Dir  string
	// mounts and address are how other commands in the container are resolved.
	mounts  Mounts
	address string
}

// Resolve turns what a container says into what is run here: in root unless a volume
// is its working directory. The first word of its command is the program of its
// image; it has no other.
func Resolve(program Program, container *corev1.Container, env []corev1.EnvVar, m Mounts, address, root string) (Command, error) {
	values := map[string]string{}
	for _, variable := range env {
		values[variable.Name] = variable.Value
	}
	words := container.Args
	if len(container.Command) > 0 {
		if filepath.Base(container.Command[0]) != program.Name {
			return Command{}, &exec.Error{Name: container.Command[0], Err: errors.New("its image is played by the program " + program.Name + " alone: there is no other command in it")}
		}
		words = append(append([]string{}, container.Command[1:]...), container.Args...)
	}
	c := Command{Program: program, mounts: m, address: address, Dir: root}
	if container.WorkingDir != "" {
		if dir := m.rewrite(path.Clean(container.WorkingDir)); dir != path.Clean(container.WorkingDir) {
			c.Dir = dir
		}
	}
	expanded := make([]string, 0, len(words))
	for _, word := range words {
		expanded = append(expanded, expand(word, values))
	}
	var err error
	if c.Args, err = c.arguments(expanded); err != nil {
		return Command{}, err
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
	if len(words) == 0 || filepath.Base(words[0]) != c.Name {
		return Command{}, fmt.Errorf("running %q: %w: run %s with arguments, or read its files through the Secrets and ConfigMaps that they come from", strings.Join(words, " "), ErrForeign, c.Name)
	}
	other := c
	var err error
	if other.Args, err = c.arguments(words[1:]); err != nil {
		return Command{}, err
	}
	return other, nil
}

// arguments are those of a command with everything resolved that differs here.
func (c Command) arguments(words []string) ([]string, error) {
	rewritten := make([]string, 0, len(words))
	for _, word := range words {
		rewritten = append(rewritten, c.mounts.rewrite(word))
	}
	return confined(rewritten, c.address)
}
