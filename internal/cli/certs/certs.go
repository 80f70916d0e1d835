// Package certs contains the commands that check, renew and rotate the certificates of an installation.
//
// Decisions about certificates are in internal/install/certificates. The commands read the stored
// certificates, call one of its functions and store the result. Each command can be repeated: the
// second run completes a first run that was interrupted, and otherwise changes nothing.
package certs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/certificates"
)

// storeTimeout limits how long a command reads or stores the certificates. Storing includes the
// restart of the components.
const storeTimeout = 10 * time.Minute

// Installation stores the certificates of one installation. *installer.Installer implements it.
type Installation interface {
	// Certificates returns the stored certificates, and what the installation needs.
	Certificates(ctx context.Context) (certificates.Set, certificates.Spec, error)
	// WriteCertificates stores the certificates with everything that contains copies of them, and makes
	// the components use them. It writes only what differs, also after an earlier write that was
	// interrupted. It returns an error, and writes nothing, if the stored certificates are no longer the
	// previous ones.
	WriteCertificates(ctx context.Context, previous, next certificates.Set) error
	// Close ends the connections to the installation.
	Close()
}

// Open returns the installation in a namespace of a host cluster.
type Open func(ctx context.Context, host command.Host) (Installation, error)

// New returns the command that groups the commands for certificates.
func New(program *command.Program, open Open) *cobra.Command {
	return newCommand(program, open, time.Now)
}

func newCommand(program *command.Program, open Open, now func() time.Time) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Check, renew and rotate the certificates of an installation",
		Long: `Check, renew and rotate the certificates of a control plane that "init" or the chart
installed in a host cluster.

An installation renews its certificates by itself. Certificate authorities are never
replaced automatically.`,
		Example: program.Examples(`
			# List the certificates with their expiry
			{{program}} certs check`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	start := func() *session { return &session{program: program, open: open, now: now} }
	cmd.AddCommand(newCheck(start()), newRenew(start()), newRotate(start))
	return cmd
}

// session contains the flags of one command.
type session struct {
	program *command.Program
	open    Open
	now     func() time.Time
	host    command.Host
	// rotated is the authority of a step of a rotation, and empty in other commands.
	rotated string
}

// addFlags adds the flags that select the installation.
func (s *session) addFlags(cmd *cobra.Command) { s.host.AddFlags(s.program, cmd, "installation") }

// read opens the installation and reads its certificates.
func (s *session) read(ctx context.Context) (Installation, certificates.Set, certificates.Spec, error) {
	s.host.As = s.program.As
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	installation, err := s.open(ctx, s.host)
	if err != nil {
		return nil, nil, certificates.Spec{}, err
	}
	set, spec, err := installation.Certificates(ctx)
	if err != nil {
		return nil, nil, certificates.Spec{}, fmt.Errorf("reading the certificates in namespace %s of the host cluster: %w", s.host.Namespace, err)
	}
	return installation, set, spec, nil
}

// issue computes new certificates from the stored ones.
type issue func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error)

// change reads the certificates, changes them and stores the result. It prints the changes. With
// isDryRun, it stores nothing.
func (s *session) change(ctx context.Context, isDryRun bool, compute issue) ([]certificates.Change, error) {
	installation, set, spec, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	defer installation.Close()
	changed, changes, err := compute(set, spec, s.now())
	if err != nil {
		return nil, err
	}
	if isDryRun {
		s.print(changes, "would be issued")
		return changes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	// Unchanged certificates are stored too, because an earlier command may have been interrupted.
	if err := installation.WriteCertificates(ctx, set, changed); err != nil {
		return nil, fmt.Errorf("storing the certificates in namespace %s of the host cluster: %w: run the command again", s.host.Namespace, err)
	}
	s.print(changes, "issued")
	return changes, nil
}

// print prints the changes. The reason of a change of the rotated authority is the step itself.
func (s *session) print(changes []certificates.Change, done string) {
	for _, change := range changes {
		if change.Name == s.rotated {
			fmt.Fprintln(s.program.Out, change)
			continue
		}
		fmt.Fprintf(s.program.Out, "%s: %s, because it %s\n", change.Name, done, change.Reason)
	}
}

// addDryRun adds the flag with which a command stores nothing.
func addDryRun(cmd *cobra.Command, isDryRun *bool) {
	cmd.Flags().BoolVar(isDryRun, "dry-run", false, "print the changes and store nothing")
}
