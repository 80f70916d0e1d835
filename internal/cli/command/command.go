// Package command answers: what does every command of karmadactl share? The
// program it belongs to, how it reaches clusters, and how it reports that it was
// used wrongly.
//
// Data goes to Out, everything else that people read goes to Err. A command
// returns its error; nobody below the root prints one or exits.
package command

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/console"
)

// Exit codes of the program.
const (
	Done        = 0
	NotAsWanted = 1
	WrongUsage  = 2
)

// Program is what a command knows of the program that it is part of.
type Program struct {
	// Name is what the user types: karmadactl, or kubectl karmada.
	Name string
	genericiooptions.IOStreams
	// Kubeconfig is the file of the global flag; empty means $KUBECONFIG, else
	// ~/.kube/config.
	Kubeconfig string
	// As is the user to impersonate; the zero value is the user of the kubeconfig.
	As rest.ImpersonationConfig
	// Style is how messages look on standard error.
	Style console.Style
	// contexts are where commands keep the context of the control plane.
	contexts []*string
	// Completing tells that a shell waits for names: an answer that comes late is
	// worth nothing.
	Completing bool

	// telling keeps lines apart that come at the same time: members are asked all
	// at once.
	telling sync.Mutex
	warned  map[string]bool
}

// Tell writes a line for people, apart from the data.
func (p *Program) Tell(format string, args ...any) {
	p.telling.Lock()
	defer p.telling.Unlock()
	fmt.Fprintf(p.ErrOut, format+"\n", args...)
}

// warningCode is that of warnings which are meant for people.
const warningCode = 299

// HandleWarningHeader tells what an API server warns of: once, however many
// members warn of the same.
func (p *Program) HandleWarningHeader(code int, _, text string) {
	if code != warningCode || text == "" {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	if p.warned[text] {
		return
	}
	if p.warned == nil {
		p.warned = map[string]bool{}
	}
	p.warned[text] = true
	fmt.Fprintf(p.ErrOut, "%s %s\n", p.Style.Warn("Warning:"), text)
}

// Examples replaces {{program}} by the name of the program and indents the lines.
func (p *Program) Examples(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "{{program}}", p.Name)), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + strings.TrimSpace(line)
		}
	}
	return strings.Join(lines, "\n")
}

// UsageError tells that the command was called wrongly, which no retry helps.
type UsageError struct{ Reason error }

func (e *UsageError) Error() string { return e.Reason.Error() }

func (e *UsageError) Unwrap() error { return e.Reason }

// Wrong is an error of usage.
func Wrong(format string, args ...any) error {
	return &UsageError{Reason: fmt.Errorf(format, args...)}
}

// ExitCode is the code that the program ends with after a command returned err.
func ExitCode(err error) int {
	var wrong *UsageError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &wrong):
		return WrongUsage
	default:
		return NotAsWanted
	}
}

// OneName checks that there is one positional argument, a name of what.
func OneName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return Wrong("the name of the %s is missing", what)
		case 1:
			return nil
		default:
			return Wrong("only one %s can be named, not %s", what, strings.Join(args, ", "))
		}
	}
}

// NoArguments checks that there are no positional arguments.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Wrong("unexpected argument %q", args[0])
	}
	return nil
}
