// Package promote answers: how does a user hand an object that a member has on its
// own over to the control plane, without the object being made anew?
package promote

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/place"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// requestLimit is how long each side may take to answer a request.
const requestLimit = 30 * time.Second

type options struct {
	place.Access
	member command.Member

	cluster      string
	policyName   string
	output       string
	autoPolicy   bool
	dependencies bool
	dryRun       bool
}

// New is the command that promotes an object.
func New(program *command.Program) *cobra.Command {
	o := &options{Access: place.Access{Program: program}}
	factory := o.Factory(&place.Place{}, requestLimit)
	cmd := &cobra.Command{
		Use:   "promote <RESOURCE_TYPE> <RESOURCE_NAME> -n <NAME_SPACE> -C <CLUSTER_NAME>",
		Short: "Hand an object of a member over to the control plane",
		Long: `Hand an object of a member over to the control plane.

The object becomes a template, and a policy sends it to the cluster where it is. What
runs there goes on: the object is taken over as it is. From then on it is changed in
the control plane, and its policy can send it to more clusters. An object that the
control plane has already is left alone.

The member is read through the control plane, with the rights of the caller, unless a
kubeconfig or context of its own is given. When anything goes wrong, what was created
is deleted again.`,
		Example: program.Examples(`
			# Hand over a Deployment of the member "east"
			{{program}} promote deployment web -n shop -C east

			# With all that it needs: ConfigMaps, Secrets, the service account
			{{program}} promote deployment web -n shop -C east --dependencies

			# See the template and the policy, and create nothing
			{{program}} promote deployment web -n shop -C east -o yaml

			# Something without a namespace, under a policy of your own
			{{program}} promote clusterrole viewer -C east --auto-create-policy=false

			# From a member that the control plane does not lead to
			{{program}} promote deployment web -n shop -C east --cluster-kubeconfig=$HOME/.kube/east.config`),
		DisableFlagsInUseLine: true,
		Args:                  func(_ *cobra.Command, args []string) error { return o.check(args) },
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
		ValidArgsFunction:     o.complete,
	}
	o.Access.AddFlags(cmd)
	o.AddNamespace(cmd, factory)
	o.member.AddFlags(program, cmd, "context of the member in its kubeconfig; the current one if empty")
	flags := cmd.Flags()
	flags.StringVarP(&o.cluster, "cluster", "C", "", "member that has the object; required")
	program.CompleteClusters(cmd, "cluster", &o.Context)
	flags.BoolVar(&o.autoPolicy, "auto-create-policy", true, "create a policy that sends the object to the member")
	flags.StringVar(&o.policyName, "policy-name", "", "name of the policy; by default made of the object")
	flags.BoolVarP(&o.dependencies, "dependencies", "d", false, "promote what the object needs as well")
	flags.BoolVar(&o.dryRun, "dry-run", false, "check everything and change nothing")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml: print template and policy, and create nothing")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check finds wrong usage before anybody is asked.
func (o *options) check(args []string) error {
	switch {
	case len(args) != 2:
		return command.Wrong("name one object by its type and its name, such as: deployment web")
	case o.cluster == "":
		return command.Wrong("which member has the object? Name it with --cluster")
	case strings.Contains(o.cluster, ","):
		return command.Wrong("--cluster %s: an object is promoted from one member; name one", o.cluster)
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return command.Wrong("unsupported value %q of --output: use json or yaml", o.output)
	case !o.autoPolicy && o.policyName != "":
		return command.Wrong("--policy-name needs --auto-create-policy")
	}
	return nil
}

// run promotes the object of that type and name.
func (o *options) run(ctx context.Context, kind, name string) error {
	clusters, err := o.Clusters()
	if err != nil {
		return err
	}
	if _, err := clusters.Get(ctx, o.cluster); err != nil {
		return err
	}
	karmada, member := o.karmadaSide(), o.memberSide()
	if err := member.reach(ctx); err != nil {
		return err
	}
	namespace, _, err := karmada.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	object, err := member.find(namespace, kind, name)
	if err != nil {
		return err
	}
	return promotion{
		options: *o, karmada: karmada, member: member,
		rules: interpreter.Chain(builtin.New(builtin.Options{Now: time.Now})),
	}.of(ctx, object)
}

// complete completes the type of the object and then its name, as the member has
// them.
func (o *options) complete(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if o.cluster == "" || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completion.ResourceTypeAndNameCompletionFunc(o.memberSide().factory)(cmd, args, begun)
}

// karmadaSide is the control plane.
func (o *options) karmadaSide() side {
	where := place.Place{}
	return side{where: where, factory: o.Factory(&where, requestLimit)}
}

// memberSide is the member: by its own kubeconfig if one is given, else through the
// control plane.
func (o *options) memberSide() side {
	where := place.Place{Cluster: o.cluster}
	if cmp.Or(o.member.Path, o.member.Context) == "" {
		return side{where: where, factory: o.Factory(&where, requestLimit)}
	}
	access := place.Access{Program: o.Program, Kubeconfig: o.member.Path, Context: o.member.Context, Direct: true}
	return side{where: where, factory: access.Factory(&place.Place{}, requestLimit)}
}
