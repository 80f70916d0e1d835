// Package certs contains the commands that check, renew and rotate the certificates of an installation.
//
// Package internal/install/certificates decides which certificates are issued. The commands read the stored certificates, call
// that package and store the result. Each command can be repeated: the second run completes a first run that was interrupted,
// and otherwise changes nothing.
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
	// WriteCertificates stores next in place of previous, updates all copies, and makes the components use the new certificates.
	// It writes only what differs, so it completes an earlier write that was interrupted. If the stored certificates differ from
	// previous, it writes nothing and returns an error.
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
	// rotated is the name of the authority that a rotation step replaces. It is empty in other commands.
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
		return nil, nil, certificates.Spec{}, fmt.Errorf("reading the certificates in namespace %s of the host cluster: %w", s.host.Namespace,
			err)
	}
	return installation, set, spec, nil
}

// issue returns the new certificates for the stored set, with the changes.
type issue func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error)

// change reads the certificates, stores what compute returns for them, and prints the changes. With isDryRun, it stores
// nothing.
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

// print prints the changes, with a reason except for the rotated authority, which the rotation step changes.
func (s *session) print(changes []certificates.Change, done string) {
	for _, change := range changes {
		if change.Name == s.rotated {
			fmt.Fprintln(s.program.Out, change)
			continue
		}
		fmt.Fprintf(s.program.Out, "%s: %s, because it %s\n", change.Name, done, change.Reason)
	}
}

// addDryRun adds the flag --dry-run.
func addDryRun(cmd *cobra.Command, isDryRun *bool) {
	cmd.Flags().BoolVar(isDryRun, "dry-run", false, "print the changes and store nothing")
}
