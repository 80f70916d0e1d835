package certs

import (
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

Before each next step, give the trusted certificates of the authority "ca" to everyone
who has a copy of them: agents, users with a kubeconfig, and estimators.`,
		Example: program.Examples(`
			# Replace the authority of the control plane
			{{program}} certs rotate-ca begin
			{{program}} certs rotate-ca switch
			{{program}} certs rotate-ca finish`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBegin(start()), newSwitch(start()), newFinish(start()))
	return cmd
}

// rotation contains the flags of one step of a rotation.
type rotation struct {
	*session
	isForced, isDryRun bool
}

// addFlags adds the flags of all steps.
func (r *rotation) addFlags(cmd *cobra.Command) {
	r.session.addFlags(cmd)
	addDryRun(cmd, &r.isDryRun)
	cmd.Flags().StringVar(&r.rotated, "authority", certificates.CA, "certificate authority to replace: ca, front-proxy-ca or etcd-ca")
	_ = cmd.RegisterFlagCompletionFunc("authority", cobra.FixedCompletions(certificates.AuthorityNames(), cobra.ShellCompDirectiveNoFileComp))
}

// addForce adds the flag with which a step asks no question.
func (r *rotation) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&r.isForced, "force", "f", false, "ask no question")
}

func (r *rotation) validate() error {
	if !slices.Contains(certificates.AuthorityNames(), r.rotated) {
		return unknownNameError("authority", r.rotated, certificates.AuthorityNames())
	}
	return nil
}

// confirm asks the user to confirm a step. Only the authority "ca" has copies outside of the
// installation, so that the steps of the others need no confirmation.
func (r *rotation) confirm(question string) (bool, error) {
	if r.isForced || r.isDryRun || r.rotated != certificates.CA {
		return true, nil
	}
	return r.program.Confirm(question, "--force")
}

// run makes a step and prints what to do after it.
func (r *rotation) run(cmd *cobra.Command, step issue, done string) error {
	changes, err := r.change(cmd.Context(), r.isDryRun, step)
	switch {
	case err != nil:
		return fmt.Errorf("rotating a certificate authority: %w", err)
	case r.isDryRun:
		r.program.Messagef("dry run: nothing was stored")
		return nil
	case len(changes) == 0:
		r.program.Messagef("%s: this step was done before", r.rotated)
	}
	r.program.Messagef("%s", done)
	return nil
}

func newBegin(s *session) *cobra.Command {
	r := &rotation{session: s}
	var certFile, keyFile string
	cmd := &cobra.Command{
		Use:   "begin",
		Short: "Trust a new certificate authority",
		Long: `Trust a new certificate authority, which is created or given by the user. The old
authority still signs. The second run changes nothing.`,
		Example: s.program.Examples(`
			# Create the next authority of the control plane
			{{program}} certs rotate-ca begin

			# Take an authority of your own
			{{program}} certs rotate-ca begin --ca-cert-file=own-ca.crt --ca-key-file=own-ca.key

			# Create the next authority of etcd
			{{program}} certs rotate-ca begin --authority=etcd-ca`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.validate(); err != nil {
				return err
			}
			given, err := r.readGiven(certFile, keyFile)
			if err != nil {
				return err
			}
			return r.run(cmd, func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error) {
				if !given.IsZero() {
					spec.GivenCA = given
				}
				return certificates.BeginRotation(set, spec, r.rotated, now)
			}, "next: "+r.nextAfterBegin())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&certFile, "ca-cert-file", "", "certificate of an authority of your own; if empty, an authority is created")
	flags.StringVar(&keyFile, "ca-key-file", "", "key of the authority in --ca-cert-file")
	for _, flag := range []string{"ca-cert-file", "ca-key-file"} {
		_ = cmd.MarkFlagFilename(flag)
	}
	return cmd
}

func (r *rotation) nextAfterBegin() string {
	if r.rotated != certificates.CA {
		return r.switchCommand()
	}
	return "give the trusted certificates to agents, users and estimators, then run " + r.switchCommand()
}

func (r *rotation) switchCommand() string { return r.stepCommand("switch") }

// stepCommand returns the command of a step for messages.
func (r *rotation) stepCommand(step string) string {
	text := fmt.Sprintf("%s certs rotate-ca %s", r.program.Name, step)
	if r.rotated != certificates.CA {
		text += " --authority=" + r.rotated
	}
	return text
}

// readGiven reads the files of an authority of the user.
func (r *rotation) readGiven(certFile, keyFile string) (pki.GivenAuthority, error) {
	switch {
	case certFile == "" && keyFile == "":
		return pki.GivenAuthority{}, nil
	case certFile == "" || keyFile == "":
		return pki.GivenAuthority{}, command.NewUsageError("--ca-cert-file and --ca-key-file belong together: set both")
	case r.rotated != certificates.CA:
		return pki.GivenAuthority{}, command.NewUsageError("--ca-cert-file: only the authority %s can be given, not %s", certificates.CA, r.rotated)
	}
	cert, err := readFile(certFile)
	if err != nil {
		return pki.GivenAuthority{}, fmt.Errorf("reading --ca-cert-file: %w", err)
	}
	key, err := readFile(keyFile)
	if err != nil {
		return pki.GivenAuthority{}, fmt.Errorf("reading --ca-key-file: %w", err)
	}
	given := pki.GivenAuthority{Cert: pki.Given{Source: certFile, PEM: cert}, Key: pki.Given{Source: keyFile, PEM: key}}
	return given, given.Check(r.now())
}

func newSwitch(s *session) *cobra.Command {
	r := &rotation{session: s}
	cmd := &cobra.Command{
		Use:   "switch",
		Short: "Sign with the new certificate authority",
		Long: `Issue all certificates of the authority again with the new authority. The old authority
is still trusted.

After this step, clients that do not trust the new authority yet cannot connect.`,
		Example: s.program.Examples(`
			# Sign with the new authority of the control plane
			{{program}} certs rotate-ca switch`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.validate(); err != nil {
				return err
			}
			if agreed, err := r.confirm("Clients that do not trust the new authority yet cannot connect any more. Do all agents, kubeconfigs and estimators have the new trusted certificates?"); err != nil || !agreed {
				return err
			}
			return r.run(cmd, func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error) {
				return certificates.SwitchRotation(set, spec, r.rotated, now)
			}, "next: "+r.nextAfterSwitch())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	r.addFlags(cmd)
	r.addForce(cmd)
	return cmd
}

func (r *rotation) nextAfterSwitch() string {
	if r.rotated != certificates.CA {
		return r.stepCommand("finish")
	}
	return "replace the client certificates of agents and users that the old authority signed, then run " + r.stepCommand("finish")
}

func newFinish(s *session) *cobra.Command {
	r := &rotation{session: s}
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Stop trusting the old certificate authority",
		Long: `Stop trusting the old certificate authority. The command refuses this while a
certificate of the installation is signed by the old authority.

After this step, certificates of agents and users that the old authority signed are
rejected.`,
		Example: s.program.Examples(`
			# Remove the old authority of the control plane
			{{program}} certs rotate-ca finish`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.validate(); err != nil {
				return err
			}
			if agreed, err := r.confirm("Certificates that the old authority signed are rejected from now on. Have all agents and users new certificates?"); err != nil || !agreed {
				return err
			}
			return r.run(cmd, func(set certificates.Set, _ certificates.Spec, _ time.Time) (certificates.Set, []certificates.Change, error) {
				return certificates.FinishRotation(set, r.rotated)
			}, "the rotation is finished")
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	r.addFlags(cmd)
	r.addForce(cmd)
	return cmd
}
