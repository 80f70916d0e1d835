// Package trace explains why a template is in its clusters as the user wants, or why it is not. It reads
// the facts and prints the diagnosis of internal/domain/diagnose.
//
// The exit code is 0 only if every link of the chain is ok. An object that cannot be read is reported
// as unknown. Equal states give equal output.
package trace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/chain"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/diagnose"
)

type options struct {
	chain.Flags
	format console.Format
}

// New returns the command that explains how a template is propagated.
func New(program *command.Program) *cobra.Command {
	o := &options{Flags: chain.NewFlags(program)}
	cmd := &cobra.Command{
		Use:   "trace (KIND/NAME | KIND NAME)",
		Short: "Explain why an object is or is not in its clusters",
		Long: `Check the way of one object from the control plane to its clusters: template, policy,
binding, schedule, override policies, Work, member object and status. Each line has a
verdict: ok, failed, pending (waits for a controller, a member or you), unknown (could not
be read) or - (not checked, or without effect). Lines with "left out" name the clusters that the scheduler
does not use, each with the filter and the reason. "Next:" says what you can do.

The clusters are read through the control plane. In a fleet of more than 10 clusters,
only clusters with a problem are queried; the Works have the state of the others.

The exit code is 0 if all lines are ok, and 1 if the state is not as wanted or unknown.`,
		Example: program.Examples(`
			# Why does a Deployment not run?
			{{program}} trace deployment/web -n shop

			# One line for each cluster
			{{program}} trace deploy web -n shop -o wide

			# The result for a program
			{{program}} trace deploy/web -n shop -o json`),
		Args: o.check,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd)
	o.format.AddFlag(cmd)
	return cmd
}

// check returns a usage error if arguments or flags are wrong. It sends no request.
func (o *options) check(cmd *cobra.Command, args []string) error {
	if o.format == console.Name {
		return command.NewUsageError("--output name is not supported: use json, yaml or wide")
	}
	return chain.CheckArguments(cmd, args)
}

func (o *options) run(ctx context.Context, args []string) error {
	reader, err := o.NewReader(args)
	if err != nil {
		return err
	}
	facts := reader.Read(ctx, time.Now())
	facts.Members = reader.QueryMembers(ctx, diagnose.MemberQueries(facts))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	diagnosis := diagnose.Trace(facts)
	if err := o.print(reader.Template, diagnosis); err != nil {
		return err
	}
	return resultError(diagnosis)
}

// resultError returns an error that names the first link that is not as wanted, or nil.
func resultError(diagnosis diagnose.Diagnosis) error {
	switch diagnosis.Verdict {
	case diagnose.OK, diagnose.NotApplicable:
		return nil
	}
	for i := range diagnosis.Links {
		if link := &diagnosis.Links[i]; link.Verdict == diagnosis.Verdict {
			where := ""
			if link.Cluster != "" {
				where = " in cluster " + link.Cluster
			}
			return fmt.Errorf("%s is %s%s: %s", link.Stage, strings.ToLower(string(link.Verdict)), where, link.Reason)
		}
	}
	return fmt.Errorf("the result is %s", diagnosis.Verdict)
}
