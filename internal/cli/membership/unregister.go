package membership

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

// Files that the register command of other releases leaves on the machine on which the command is
// run.
const (
	agentFile = "/etc/karmada/karmada-agent.conf"
	caFile    = "/etc/karmada/pki/ca.crt"
)

// NewUnregister returns the command that unregisters a cluster in pull mode.
func NewUnregister(program *command.Program) *cobra.Command {
	var (
		member     command.MemberFlags
		karmada    command.Kubeconfig
		unregister = pull.Unregister{Log: program.Messagef}
	)
	cmd := &cobra.Command{
		Use:   "unregister CLUSTER_NAME",
		Short: "Unregister a cluster in pull mode",
		Long: `Unregister a cluster in pull mode.

The propagated objects in the member are deleted first; then the Cluster, its
namespace and the permissions of the agent in the control plane; finally the agent and
the other objects that register created in the member.

The command uses the kubeconfig of the agent, which it reads in the
member, with the context that the agent uses. --karmada-config sets another
kubeconfig, and --karmada-context the context in it.`,
		Example: program.Examples(`
			# Unregister the member "east" with the credentials of its agent
			{{program}} unregister east --cluster-kubeconfig=$HOME/.kube/east.config

			# Remove a member whose agent no longer runs; the propagated objects stay
			{{program}} unregister east --cluster-kubeconfig=$HOME/.kube/east.config --karmada-config=$HOME/.kube/karmada.config --force --wait=10s`),
		Args: command.RequireOneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unregister.Name = args[0]
			if err := loadUnregisterConfigs(&unregister, karmada, member.Kubeconfig); err != nil {
				return err
			}
			if err := unregister.Run(cmd.Context()); err != nil || unregister.DryRun {
				return err
			}
			for _, problem := range removeAgentFiles(unregister.Name, agentFile, caFile) {
				program.Messagef("warning: %v", problem)
			}
			fmt.Fprintf(program.Out, "cluster(%s) is unregistered successfully\n", unregister.Name)
			return nil
		},
		ValidArgsFunction: program.CompleteCluster(&karmada.Context),
	}
	program.AddContext(cmd, "karmada-context", &karmada.Context,
		"context in the kubeconfig of --karmada-config; without that flag it has no effect", func() string { return karmada.Path })
	member.AddFlags(program, cmd, command.MemberContextUsage)
	flags := cmd.Flags()
	flags.StringVar(&karmada.Path, "karmada-config", "", "kubeconfig of the control plane; the credentials of the agent are used if empty")
	flags.StringVar(&unregister.AgentName, "agent-name", pull.AgentName, "name of the agent's Deployment")
	flags.StringVarP(&unregister.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the agent in the member")
	flags.StringVar(&unregister.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster,
		"namespace of the cluster's secrets, unless the agent uses another one")
	flags.BoolVar(&unregister.DryRun, "dry-run", false, "validate everything without changing objects")
	flags.BoolVar(&unregister.Force, "force", false,
		"continue if the control plane or the member is unreachable, and remove the finalizers after the wait: the propagated objects stay in the cluster")
	flags.DurationVar(&unregister.Wait, "wait", registration.DefaultWait, "time limit of the removal")
	_ = cmd.MarkFlagFilename("karmada-config")
	return cmd
}

// loadUnregisterConfigs loads the client configurations of both clusters.
func loadUnregisterConfigs(unregister *pull.Unregister, karmada, member command.Kubeconfig) (err error) {
	if unregister.Wait <= 0 {
		return command.NewUsageError("--wait must be longer than 0, not %s", unregister.Wait.Round(time.Second))
	}
	if member.Path == "" {
		return command.NewUsageError("--cluster-kubeconfig is missing: the kubeconfig of the member")
	}
	if unregister.Member, unregister.MemberOrigin, err = member.MemberConfig(unregister.Name); err != nil {
		return err
	}
	// Scripts may pass the global --kubeconfig and --karmada-context. These flags have no effect if
	// the kubeconfig of the agent is used.
	if karmada.Path == "" {
		return nil
	}
	if unregister.Karmada, err = karmada.Config(); err != nil {
		return fmt.Errorf("the control plane: %w", err)
	}
	return nil
}

// removeAgentFiles deletes the files of the cluster's agent that other releases left on this machine. It keeps the files of
// other clusters' agents.
func removeAgentFiles(cluster, agentFile, caFile string) []error {
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
