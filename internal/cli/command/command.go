// Package command contains what all commands of karmadactl share: the program, its kubeconfigs and clients, the
// selection of the clusters in which a command acts, parallel queries of members, and usage errors.
//
// Commands write data to Out and messages to ErrOut. They return their error: only the root command prints errors and
// exits.
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
	ExitSuccess = 0
	ExitFailure = 1
	ExitUsage   = 2
)

// Program is the program to which a command belongs. All commands share it.
type Program struct {
	// Name is the name that the user types: karmadactl, or kubectl karmada.
	Name string
	genericiooptions.IOStreams
	// Kubeconfig is the path in the global flag --kubeconfig. Empty means $KUBECONFIG, or ~/.kube/config if that is
	// empty too.
	Kubeconfig string
	// As is the user to impersonate. The zero value means the user of the kubeconfig.
	As rest.ImpersonationConfig
	// Style is the style of messages on standard error.
	Style console.Style
	// contextTargets points to the variable of each command that contains its context of the control plane.
	contextTargets []*string
	// IsCompletion is true if a shell requested completions. Requests then have a short timeout.
	IsCompletion bool

	// mu protects printedWarnings, and prevents that lines of concurrent messages mix. Messages are concurrent because
	// several members are queried at the same time.
	mu              sync.Mutex
	printedWarnings map[string]bool
}

// Messagef prints a message line to standard error.
func (p *Program) Messagef(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.ErrOut, format+"\n", args...)
}

// warningCode is the code of warnings that are meant for users.
const warningCode = 299

// HandleWarningHeader prints a warning of an API server. If several members send the same warning,
// it is printed once.
func (p *Program) HandleWarningHeader(code int, _, text string) {
	if code != warningCode || text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.printedWarnings[text] {
		return
	}
	if p.printedWarnings == nil {
		p.printedWarnings = map[string]bool{}
	}
	p.printedWarnings[text] = true
	fmt.Fprintf(p.ErrOut, "%s %s\n", p.Style.Warn("Warning:"), text)
}

// Examples replaces {{program}} with the name of the program and indents the lines.
func (p *Program) Examples(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "{{program}}", p.Name)), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + strings.TrimSpace(line)
		}
	}
	return strings.Join(lines, "\n")
}

// UsageError means that the arguments or flags of a command are invalid.
type UsageError struct{ Reason error }

func (u *UsageError) Error() string { return u.Reason.Error() }

func (u *UsageError) Unwrap() error { return u.Reason }

// NewUsageError returns a UsageError with the formatted text.
func NewUsageError(format string, args ...any) error {
	return &UsageError{Reason: fmt.Errorf(format, args...)}
}

// ResultError means that a command succeeded, but that its result is not as the user wants. Code is the exit code of the
// program.
type ResultError struct {
	Code   int
	Reason error
}

func (r *ResultError) Error() string { return r.Reason.Error() }

func (r *ResultError) Unwrap() error { return r.Reason }

// ExitCode returns the exit code of the program for the error of a command.
func ExitCode(err error) int {
	var usage *UsageError
	var result *ResultError
	switch {
	case err == nil:
		return ExitSuccess
	case errors.As(err, &result):
		return result.Code
	case errors.As(err, &usage):
		return ExitUsage
	default:
		return ExitFailure
	}
}

// RequireOneName returns a validation that requires exactly one positional argument: the name of an object of the given
// kind.
func RequireOneName(kind string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return NewUsageError("the name of the %s is missing", kind)
		case 1:
			return nil
		default:
			return NewUsageError("only one %s can be named, not %s", kind, strings.Join(args, ", "))
		}
	}
}

// NoArguments returns a usage error if there are positional arguments.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return NewUsageError("unexpected argument %q", args[0])
	}
	return nil
}
