// Package ownership contains the commands that change whether the control plane owns an object of a
// member: promote takes over an existing object, orphans lists objects without a Work to release or
// delete them, and held lists the deletions that wait for a confirmation.
package ownership

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
)

// promoteRequestTimeout is the time limit of each request.
const promoteRequestTimeout = 30 * time.Second

type promoteOptions struct {
	command.ClientFlags
	member command.MemberFlags

	cluster      string
	policyName   string
	output       string
	autoPolicy   bool
	dependencies bool
	dryRun       bool
}

// NewPromote returns the command that promotes an object.
func NewPromote(program *command.Program) *cobra.Command {
	o := &promoteOptions{ClientFlags: command.ClientFlags{Program: program}}
	factory := o.NewFactory(&command.Target{}, promoteRequestTimeout)
	cmd := &cobra.Command{
		Use:   "promote <RESOURCE_TYPE> <RESOURCE_NAME> -n <NAME_SPACE> -C <CLUSTER_NAME>",
		Short: "Promote an object of a member to a template in the control plane",
		Long: `Promote an object of a member to a template in the control plane.

The object becomes a template, and a policy propagates it to the cluster that has it.
The control plane takes over the object in the member, which stays unchanged and keeps
running. From then on, change it in the control plane; its policy can propagate it to more
clusters. If the control plane already has the object, nothing is changed.

The member is read through the control plane with your permissions, unless you set the
member's own kubeconfig or context. If the command fails, it deletes the objects that it
created.`,
		Example: program.Examples(`
			# Promote a Deployment of the member "east"
			{{program}} promote deployment web -n shop -C east

			# With its dependencies: ConfigMaps, Secrets, the service account
			{{program}} promote deployment web -n shop -C east --dependencies

			# Print the template and the policy without creating them
			{{program}} promote deployment web -n shop -C east -o yaml

			# A cluster-scoped object, with an existing policy
			{{program}} promote clusterrole viewer -C east --auto-create-policy=false

			# From a member that is not reachable through the control plane
			{{program}} promote deployment web -n shop -C east --cluster-kubeconfig=$HOME/.kube/east.config`),
		DisableFlagsInUseLine: true,
		Args:                  func(_ *cobra.Command, args []string) error { return o.validate(args) },
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
		ValidArgsFunction:     o.complete,
	}
	o.ClientFlags.AddFlags(cmd)
	o.AddNamespaceFlag(cmd, factory)
	o.member.AddFlags(program, cmd, "context of the member in its kubeconfig; the current context if empty")
	flags := cmd.Flags()
	flags.StringVarP(&o.cluster, "cluster", "C", "", "member that has the object; required")
	program.CompleteClusters(cmd, "cluster", &o.Context)
	flags.BoolVar(&o.autoPolicy, "auto-create-policy", true, "create a policy that propagates the object to the member")
	flags.StringVar(&o.policyName, "policy-name", "", "name of the policy; derived from the object if empty")
	flags.BoolVarP(&o.dependencies, "dependencies", "d", false, "also promote the dependencies of the object")
	flags.BoolVar(&o.dryRun, "dry-run", false, "validate everything without changing objects")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml: print template and policy without creating them")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *promoteOptions) validate(args []string) error {
	switch {
	case len(args) != 2:
		return command.NewUsageError("name one object by its type and its name, such as: deployment web")
	case o.cluster == "":
		return command.NewUsageError("the member is missing: set it with --cluster")
	case strings.Contains(o.cluster, ","):
		return command.NewUsageError("--cluster %s: an object is promoted from one member only", o.cluster)
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return command.NewUsageError("unsupported value %q of --output: use json or yaml", o.output)
	case !o.autoPolicy && o.policyName != "":
		return command.NewUsageError("--policy-name needs --auto-create-policy")
	}
	return nil
}

// run promotes the named object of the given type.
func (o *promoteOptions) run(ctx context.Context, kind, name string) error {
	clusters, err := o.ClusterClient()
	if err != nil {
		return err
	}
	if _, err := clusters.Get(ctx, o.cluster); err != nil {
		return err
	}
	karmada, member := o.newKarmadaClient(), o.newMemberClient()
	if err := member.verifyReachable(ctx); err != nil {
		return err
	}
	namespace, _, err := karmada.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	object, err := member.findObject(namespace, kind, name)
	if err != nil {
		return err
	}
	rules, err := o.LoadRules(ctx, interpreters.Options{})
	if err != nil {
		return err
	}
	return promotion{promoteOptions: *o, karmada: karmada, member: member, rules: rules}.promote(ctx, object)
}

// complete completes the first argument with types, and the second argument with names of objects.
// It reads them from the member.
func (o *promoteOptions) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if o.cluster == "" || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completion.ResourceTypeAndNameCompletionFunc(o.newMemberClient().factory)(cmd, args, prefix)
}

// newKarmadaClient returns the client of the control plane.
func (o *promoteOptions) newKarmadaClient() clusterClient {
	target := command.Target{}
	return clusterClient{target: target, factory: o.NewFactory(&target, promoteRequestTimeout)}
}

// newMemberClient returns a client of the member, with the member's own kubeconfig if the user set one, and otherwise through
// the cluster proxy.
func (o *promoteOptions) newMemberClient() clusterClient {
	target := command.Target{Cluster: o.cluster}
	if cmp.Or(o.member.Path, o.member.Context) == "" {
		return clusterClient{target: target, factory: o.NewFactory(&target, promoteRequestTimeout)}
	}
	access := command.ClientFlags{Program: o.Program, Kubeconfig: o.member.Path, Context: o.member.Context, IsMemberContext: true}
	return clusterClient{target: target, factory: access.NewFactory(&command.Target{}, promoteRequestTimeout)}
}
