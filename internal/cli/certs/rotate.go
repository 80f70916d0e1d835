package certs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/pki"
)

// newRotate returns the command that groups the steps of a rotation. start returns the session of one
// step.
func newRotate(start func() *session) *cobra.Command {
	program := start().program
	cmd := &cobra.Command{
		Use:   "rotate-ca",
		Short: "Replace a certificate authority without an interruption",
		Long: `Replace a certificate authority in three steps, without an interruption:

1. begin: a new authority is trusted, and the old one still signs.
2. switch: the new authority signs all certificates, and the old one is still trusted.
3. finish: the old authority is no longer trusted.

Before switch and finish, distribute the trusted certificates of the authority "ca" to all
that have a copy of them: agents, users with a kubeconfig, and estimators.`,
		Example: program.Examples(`
			# Replace the authority of the control plane
			{{program}} certs rotate-ca begin
			{{program}} certs rotate-ca switch
			{{program}} certs rotate-ca finish`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, step := range rotationSteps() {
		cmd.AddCommand(newRotationStep(start(), step))
	}
	return cmd
}

// rotationStep is one step of a rotation.
type rotationStep struct {
	use, short, long, example string
	// question must be confirmed before the step for the authority "ca". It is empty if no confirmation is needed.
	question string
	issue    func(r *rotation, set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error)
	// next is the name of the next step. beforeNext is what users must do before it; this applies only to the authority "ca",
	// because only its certificates have copies outside of the installation.
	next, beforeNext string
}

func rotationSteps() []rotationStep {
	return []rotationStep{
		{
			use: "begin", short: "Trust a new certificate authority",
			long: `Trust a new certificate authority, which is created or which you provide. The old
authority still signs. Running the command again changes nothing.`,
			example: `
			# Create the next authority of the control plane
			{{program}} certs rotate-ca begin

			# Take an authority of your own
			{{program}} certs rotate-ca begin --ca-cert-file=own-ca.crt --ca-key-file=own-ca.key

			# Create the next authority of etcd
			{{program}} certs rotate-ca begin --authority=etcd-ca`,
			issue: func(r *rotation, set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error) {
				if !r.given.IsZero() {
					spec.GivenCA = r.given
				}
				return certificates.BeginRotation(set, spec, r.rotated, now)
			},
			next: "switch", beforeNext: "give the trusted certificates to agents, users and estimators, then run ",
		},
		{
			use: "switch", short: "Sign with the new certificate authority",
			long: `Issue all certificates of the authority again with the new authority. The old authority
is still trusted.

After this step, clients that do not trust the new authority yet cannot connect.`,
			example: `
			# Sign with the new authority of the control plane
			{{program}} certs rotate-ca switch`,
			question: "Clients that do not trust the new authority yet cannot connect any more. Do all agents, kubeconfigs and estimators have the new trusted certificates?",
			issue: func(r *rotation, set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error) {
				return certificates.SwitchRotation(set, spec, r.rotated, now)
			},
			next: "finish", beforeNext: "replace the client certificates of agents and users that the old authority signed, then run ",
		},
		{
			use: "finish", short: "Stop trusting the old certificate authority",
			long: `Stop trusting the old certificate authority. The command refuses this while a
certificate of the installation is signed by the old authority.

After this step, certificates of agents and users that the old authority signed are
rejected.`,
			example: `
			# Remove the old authority of the control plane
			{{program}} certs rotate-ca finish`,
			question: "Certificates that the old authority signed are rejected from now on. Have all agents and users new certificates?",
			issue: func(r *rotation, set certificates.Set, _ certificates.Spec, _ time.Time) (certificates.Set, []certificates.Change, error) {
				return certificates.FinishRotation(set, r.rotated)
			},
		},
	}
}

// rotation contains the flags of one step of a rotation.
type rotation struct {
	*session
	isForced, isDryRun bool
	certFile, keyFile  string
	given              pki.GivenAuthority
}

func newRotationStep(s *session, step rotationStep) *cobra.Command {
	r := &rotation{session: s}
	cmd := &cobra.Command{
		Use: step.use, Short: step.short, Long: step.long, Example: s.program.Examples(step.example),
		Args:              command.NoArguments,
		RunE:              func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context(), step) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	s.addFlags(cmd)
	addDryRun(cmd, &r.isDryRun)
	flags := cmd.Flags()
	flags.StringVar(&r.rotated, "authority", certificates.CA, "certificate authority to replace: ca, front-proxy-ca or etcd-ca")
	_ = cmd.RegisterFlagCompletionFunc("authority", cobra.FixedCompletions(certificates.AuthorityNames(), cobra.ShellCompDirectiveNoFileComp))
	if step.question != "" {
		flags.BoolVarP(&r.isForced, "force", "f", false, "ask no question")
		return cmd
	}
	flags.StringVar(&r.certFile, "ca-cert-file", "", "certificate of an authority of your own; if empty, an authority is created")
	flags.StringVar(&r.keyFile, "ca-key-file", "", "key of the authority in --ca-cert-file")
	for _, flag := range []string{"ca-cert-file", "ca-key-file"} {
		_ = cmd.MarkFlagFilename(flag)
	}
	return cmd
}

// run performs the step and prints what to do after it.
func (r *rotation) run(ctx context.Context, step rotationStep) (err error) {
	if !slices.Contains(certificates.AuthorityNames(), r.rotated) {
		return unknownNameError("authority", r.rotated, certificates.AuthorityNames())
	}
	if r.given, err = r.readGiven(); err != nil {
		return err
	}
	if step.question != "" && !r.isForced && !r.isDryRun && r.rotated == certificates.CA {
		if agreed, err := r.program.Confirm(step.question, "--force"); err != nil || !agreed {
			return err
		}
	}
	changes, err := r.change(ctx, r.isDryRun, func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set,
		[]certificates.Change, error) {
		return step.issue(r, set, spec, now)
	})
	switch {
	case err != nil:
		return fmt.Errorf("rotating a certificate authority: %w", err)
	case r.isDryRun:
		r.program.Messagef("dry run: nothing was stored")
		return nil
	case len(changes) == 0:
		r.program.Messagef("%s: this step was done before", r.rotated)
	}
	r.program.Messagef("%s", r.describeNext(step))
	return nil
}

// describeNext returns what to do after the step.
func (r *rotation) describeNext(step rotationStep) string {
	next := fmt.Sprintf("%s certs rotate-ca %s", r.program.Name, step.next)
	switch {
	case step.next == "":
		return "the rotation is finished"
	case r.rotated != certificates.CA:
		return "next: " + next + " --authority=" + r.rotated
	}
	return "next: " + step.beforeNext + next
}

// readGiven reads the authority that the user provides. It returns a zero value if there is none.
func (r *rotation) readGiven() (pki.GivenAuthority, error) {
	switch {
	case r.certFile == "" && r.keyFile == "":
		return pki.GivenAuthority{}, nil
	case r.certFile == "" || r.keyFile == "":
		return pki.GivenAuthority{}, command.NewUsageError("--ca-cert-file and --ca-key-file belong together: set both")
	case r.rotated != certificates.CA:
		return pki.GivenAuthority{}, command.NewUsageError("--ca-cert-file: only the authority %s can be given, not %s", certificates.CA,
			r.rotated)
	}
	cert, err := readFile(r.certFile)
	if err != nil {
		return pki.GivenAuthority{}, fmt.Errorf("reading --ca-cert-file: %w", err)
	}
	key, err := readFile(r.keyFile)
	if err != nil {
		return pki.GivenAuthority{}, fmt.Errorf("reading --ca-key-file: %w", err)
	}
	given := pki.GivenAuthority{Cert: pki.Given{Source: r.certFile, PEM: cert}, Key: pki.Given{Source: r.keyFile, PEM: key}}
	return given, given.Check(r.now())
}
