package certs

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/spelling"
	"karmada.io/karmada/internal/install/certificates"
)

func newRenew(s *session) *cobra.Command {
	isDryRun := false
	cmd := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Issue certificates again",
		Long: `Issue the certificates that are missing or due for renewal, and the named ones also if
they are valid. A certificate keeps its key. The components use the new certificates
when the command ends.

An authority is not renewed: see "rotate-ca".`,
		Example: s.program.Examples(`
			# Issue what is due for renewal
			{{program}} certs renew

			# Issue the certificate of the API server now
			{{program}} certs renew apiserver`),
		Args: validateLeafNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			changes, err := s.change(cmd.Context(), isDryRun,
				func(set certificates.Set, spec certificates.Spec, now time.Time) (certificates.Set, []certificates.Change, error) {
					return certificates.Renew(set, spec, names, now)
				})
			if err == nil && len(changes) == 0 {
				s.program.Messagef("no certificate is due for renewal")
			}
			return err
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return slices.DeleteFunc(certificates.LeafNames(), func(name string) bool { return slices.Contains(args, name) }),
				cobra.ShellCompDirectiveNoFileComp
		},
	}
	s.addFlags(cmd)
	addDryRun(cmd, &isDryRun)
	return cmd
}

// validateLeafNames returns a usage error if an argument does not name a certificate that can be renewed.
func validateLeafNames(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if slices.Contains(certificates.LeafNames(), name) {
			continue
		}
		if slices.Contains(certificates.AuthorityNames(), name) {
			return command.NewUsageError("%s is a certificate authority: replace it with \"certs rotate-ca begin --authority=%s\"", name, name)
		}
		return unknownNameError("certificate", name, certificates.LeafNames())
	}
	return nil
}

// unknownNameError returns a usage error for a name that is not among the known names.
func unknownNameError(kind, name string, known []string) error {
	if nearest := spelling.Nearest(name, known); nearest != "" {
		return command.NewUsageError("there is no %s %q: did you mean %s?", kind, name, nearest)
	}
	return command.NewUsageError("there is no %s %q: use one of %q", kind, name, known)
}
