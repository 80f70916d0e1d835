package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/install/certificates"
)

func newCheck(s *session) *cobra.Command {
	var (
		format     console.Format
		dir        string
		warnWithin time.Duration
	)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List the certificates with their expiry and state",
		Long: `List the certificates of an installation with their expiry and state.

The exit code is 1 if a certificate has expired, cannot be used or does not meet the
needs of the installation. From the time in the column RENEWED FROM on, the next
renewal issues the certificate again, and an authority should be rotated.`,
		Example: s.program.Examples(`
			# List the certificates of the installation in the host cluster
			{{program}} certs check

			# Return exit code 1 if a certificate expires in the next 30 days
			{{program}} certs check --warn-within=720h

			# List the certificates in a directory
			{{program}} certs check --karmada-pki=/etc/karmada/pki`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if warnWithin < 0 {
				return command.NewUsageError("--warn-within must not be negative: %s", warnWithin)
			}
			list, renewalErr, err := s.inspect(cmd.Context(), dir)
			if err != nil {
				return err
			}
			result := newReport(list, s.now(), warnWithin)
			return errors.Join(format.Print(s.program.Out, result.output()), result.err(), renewalErr)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	s.addFlags(cmd)
	format.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&dir, "karmada-pki", "", "directory with certificates to check in place of an installation")
	flags.DurationVar(&warnWithin, "warn-within", 0, "return exit code 1 also if a certificate expires within this time")
	_ = cmd.MarkFlagDirname("karmada-pki")
	return cmd
}

// inspect returns the state of the certificates in dir, or of the installation if dir is empty. renewalErr is the error that the
// next renewal would return.
func (s *session) inspect(ctx context.Context, dir string) (list []certificates.Certificate, renewalErr, err error) {
	if dir != "" {
		set, err := readDir(dir)
		return certificates.Inspect(set, s.now()), nil, err
	}
	_, set, spec, err := s.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	list = certificates.Inspect(set, s.now())
	_, needed, err := certificates.Ensure(set, spec, s.now())
	if err != nil {
		return list, fmt.Errorf("the certificates cannot be renewed: %w", err), nil
	}
	return addNeeded(list, needed, s.now()), nil, nil
}

// addNeeded adds missing certificates to the list, and the reasons why valid certificates must be renewed.
func addNeeded(list []certificates.Certificate, needed []certificates.Change, now time.Time) []certificates.Certificate {
	for _, change := range needed {
		at := slices.IndexFunc(list, func(c certificates.Certificate) bool { return c.Name == change.Name })
		switch {
		case at < 0:
			list = append(list, certificates.Certificate{Name: change.Name, IsAuthority: slices.Contains(certificates.AuthorityNames(), change.Name),
				Problem: change.Reason})
		case list[at].Problem == "" && !list[at].IsDue(now):
			list[at].Problem = change.Reason
		}
	}
	return list
}

// checkedCertificate is a certificate in JSON and YAML output.
type checkedCertificate struct {
	certificates.Certificate
	State string `json:"state"`
	// isWarned is true if the state makes the exit code 1.
	isWarned bool
}

// report is the result of one check.
type report []checkedCertificate

func newReport(list []certificates.Certificate, now time.Time, warnWithin time.Duration) report {
	checked := make(report, 0, len(list))
	for _, certificate := range list {
		one := checkedCertificate{Certificate: certificate, State: "valid"}
		remaining := certificate.NotAfter.Sub(now)
		switch {
		case certificate.Problem != "":
			one.State, one.isWarned = certificate.Problem, true
		case remaining < warnWithin:
			one.State, one.isWarned = "expires in "+duration.HumanDuration(remaining), true
		case certificate.IsDue(now) && certificate.IsAuthority:
			one.State = "valid, due for rotation"
		case certificate.IsDue(now):
			one.State = "valid, due for renewal"
		}
		checked = append(checked, one)
	}
	return checked
}

func (r report) output() console.Output {
	list := console.Output{
		Header:        []string{"NAME", "SUBJECT", "ISSUER", "EXPIRES", "RENEWED FROM", "STATE", "VALID FROM", "SERIAL"},
		NarrowColumns: 6, ColumnGap: 3, Object: map[string]any{"certificates": r},
	}
	for _, one := range r {
		list.Names = append(list.Names, one.Name)
		list.Rows = append(list.Rows, []string{
			one.Name, console.OrNone(one.Subject), console.OrNone(one.Issuer), formatTime(one.NotAfter), formatTime(one.RenewAt), one.State,
			formatTime(one.NotBefore), console.OrNone(one.Serial),
		})
	}
	return list
}

// err returns a ResultError if a certificate needs attention.
func (r report) err() error {
	count := 0
	for _, one := range r {
		if one.isWarned {
			count++
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return &command.ResultError{Code: command.ExitFailure, Reason: errors.New("1 certificate needs attention")}
	}
	return &command.ResultError{Code: command.ExitFailure, Reason: fmt.Errorf("%d certificates need attention", count)}
}

func formatTime(at time.Time) string {
	if at.IsZero() {
		return "<none>"
	}
	return at.UTC().Format(time.RFC3339)
}
