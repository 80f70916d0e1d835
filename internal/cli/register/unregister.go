package register

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
)

// Files that the register command of other releases leaves on the machine where it
// is run.
const (
	agentFile = "/etc/karmada/karmada-agent.conf"
	caFile    = "/etc/karmada/pki/ca.crt"
)

// NewUnregister is the command that ends the membership of a cluster in Pull mode.
func NewUnregister(program *command.Program) *cobra.Command {
	var (
		member     command.Member
		karmada    command.Access
		unregister = pull.Unregister{Log: program.Tell}
	)
	cmd := &cobra.Command{
		Use:   "unregister CLUSTER_NAME",
		Short: "Remove a member that has an agent",
		Long: `Remove a member that has an agent.

What was propagated to the member is deleted there first; then the Cluster, its
namespace and the rights of the agent in the control plane; at last the agent and
what else register has created in the member.

The control plane is reached with the kubeconfig of the agent, which is read in the
member, and with the context that the agent uses. --karmada-config names another
kubeconfig, and --karmada-context the context in that one.`,
		Example: program.Examples(`
			# Remove the member "east" with the credentials of its agent
			{{program}} unregister east --cluster-kubeconfig=$HOME/.kube/east.config

			# Remove a member whose agent does not run any more; what was propagated stays
			{{program}} unregister east --cluster-kubeconfig=$HOME/.kube/east.config --karmada-config=$HOME/.kube/karmada.config --force --wait=10s`),
		Args: command.OneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unregister.Name = args[0]
			if err := open(&unregister, karmada, member.Access); err != nil {
				return err
			}
			if err := unregister.Run(cmd.Context()); err != nil || unregister.DryRun {
				return err
			}
			for _, problem := range removeFiles(unregister.Name, agentFile, caFile) {
				program.Tell("warning: %v", problem)
			}
			fmt.Fprintf(program.Out, "cluster(%s) is unregistered successfully\n", unregister.Name)
			return nil
		},
		ValidArgsFunction: program.CompleteCluster(&karmada.Context),
	}
	program.AddContext(cmd, "karmada-context", &karmada.Context, "context in the kubeconfig of --karmada-config; without that flag it has no effect", func() string { return karmada.Path })
	member.AddFlags(program, cmd, command.MemberContextUsage)
	flags := cmd.Flags()
	flags.StringVar(&karmada.Path, "karmada-config", "", "kubeconfig of the control plane; the credentials of the agent are used if empty")
	flags.StringVar(&unregister.AgentName, "agent-name", pull.AgentName, "name of the agent's Deployment")
	flags.StringVarP(&unregister.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the agent in the member")
	flags.StringVar(&unregister.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "namespace of the cluster's secrets, unless the agent names another one")
	flags.BoolVar(&unregister.DryRun, "dry-run", false, "check everything and change nothing")
	flags.BoolVar(&unregister.Force, "force", false, "go on without the side that does not answer, and drop finalizers when time is up: what was propagated to the cluster stays there")
	flags.DurationVar(&unregister.Wait, "wait", registration.DefaultWait, "how long the removal may take")
	_ = cmd.MarkFlagFilename("karmada-config")
	return cmd
}

// open makes the client configurations.
func open(unregister *pull.Unregister, karmada, member command.Access) (err error) {
	if unregister.Wait <= 0 {
		return command.Wrong("--wait must be longer than 0, not %s", unregister.Wait.Round(time.Second))
	}
	if member.Path == "" {
		return command.Wrong("--cluster-kubeconfig is missing: the kubeconfig of the member")
	}
	if unregister.Member, unregister.MemberOrigin, err = member.MemberConfig(unregister.Name); err != nil {
		return err
	}
	// Clients pass the global --kubeconfig and --karmada-context along. Neither has a
	// meaning for the kubeconfig of the agent.
	if karmada.Path == "" {
		return nil
	}
	if unregister.Karmada, err = karmada.Config(); err != nil {
		return fmt.Errorf("the control plane: %w", err)
	}
	return nil
}

// removeFiles deletes what other releases leave on this machine, if it is about the
// agent of this cluster.
func removeFiles(cluster, agentFile, caFile string) []error {
	config, err := clientcmd.LoadFromFile(agentFile)
	if err != nil {
		return nil
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || context.AuthInfo != cluster {
		return nil
	}
	var problems []error
	for _, file := range []string{agentFile, caFile} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return problems
}
