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

// Program is a container's program. Commands contain Name, and the program gets Name as its argument 0. The
// file at Path may have another name, such as a name with a version, or the name of a file that contains
// several programs and selects one by its argument 0.
type Program struct {
	Name, Path string
	// Defaults are arguments that the program gets unless the container sets the same flags.
	Defaults []string
}

// Command is the command of a container, rewritten to the paths and addresses of this machine.
type Command struct {
	Program
	Args []string
	Env  []string
	Dir  string
	// mounts, address and variables are used to rewrite further commands of the same container.
	mounts    Mounts
	address   string
	variables []corev1.EnvVar
}

// ResolveCommand returns the command of a container. Its working directory is root, unless the
// container's working directory is in a volume. The first word of the container's command must be
// the program, because the node runs no other command.
func ResolveCommand(program Program, container *corev1.Container, env []corev1.EnvVar, m Mounts, address, root string) (Command, error) {
	values := variableValues(env)
	words := container.Args
	if len(container.Command) > 0 {
		if filepath.Base(container.Command[0]) != program.Name {
			return Command{}, &exec.Error{Name: container.Command[0],
				Err: errors.New("the image runs only the program " + program.Name + ": there is no other command in it")}
		}
		words = append(append([]string{}, container.Command[1:]...), container.Args...)
	}
	c := Command{Program: program, mounts: m, address: address, variables: env, Dir: root}
	if container.WorkingDir != "" {
		if dir := m.rewrite(path.Clean(container.WorkingDir)); dir != path.Clean(container.WorkingDir) {
			c.Dir = dir
		}
	}
	expanded := make([]string, 0, len(words))
	for _, word := range words {
		expanded = append(expanded, expandVariables(word, values))
	}
	var err error
	if c.Args, err = c.resolveArguments(expanded); err != nil {
		return Command{}, err
	}
	for _, variable := range env {
		value, err := restrictVariable(program.Name, variable, address)
		if err != nil {
			return Command{}, err
		}
		c.Env = append(c.Env, variable.Name+"="+m.rewrite(value))
	}
	return c, nil
}

// ErrForeignCommand means that a command is not the program of the container.
var ErrForeignCommand = errors.New("containers of this node are processes of the machine, where no other command runs")

// WithArguments returns the command for exec: the container's program with other arguments. It rejects any
// other program, because that would run a program of the machine.
func (c Command) WithArguments(words []string) (Command, error) {
	if len(words) == 0 || filepath.Base(words[0]) != c.Name {
		return Command{}, fmt.Errorf("running %q: %w: run %s with arguments, or read its files from their Secrets and ConfigMaps",
			strings.Join(words, " "), ErrForeignCommand, c.Name)
	}
	other := c
	var err error
	if other.Args, err = c.resolveArguments(words[1:]); err != nil {
		return Command{}, err
	}
	return other, nil
}

// resolveArguments returns arguments, rewritten to the paths and addresses of this machine.
func (c Command) resolveArguments(words []string) ([]string, error) {
	rewritten := make([]string, 0, len(words))
	for _, word := range words {
		rewritten = append(rewritten, c.mounts.rewrite(word))
	}
	if c.Name == etcdServer {
		if err := validateEtcdArguments(rewritten); err != nil {
			return nil, err
		}
	}
	return restrictAddresses(withDefaults(c.Program, rewritten, c.variables, c.address), c.address)
}
