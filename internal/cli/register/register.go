// Package register answers: how does a cluster become a member that asks the
// control plane what to do, and how does it cease to be one?
package register

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
)

// NewRegister is the command that registers a member in Pull mode.
func NewRegister(program *command.Program) *cobra.Command {
	var (
		memberContext string
		seconds       int32
		register      = pull.Register{Log: program.Tell}
	)
	cmd := &cobra.Command{
		Use:   "register [karmada-apiserver-endpoint]",
		Short: "Register a cluster as a member that has an agent",
		Long: `Register a cluster as a member that has an agent.

Run it where the API server of the member can be reached; the agent needs to reach
the control plane, and not the other way round. It needs a token, which token create
--print-register-command makes in the control plane along with this whole command.
When anything goes wrong, what was created is deleted again on both sides.`,
		Example: program.Examples(`
			# Register the cluster of the current context under the name that the kubeconfig gives it
			{{program}} register 192.0.2.1:5443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234...

			# Register the cluster of another context as "east" and say where it is
			{{program}} register 192.0.2.1:5443 --context=prod-east --cluster-name=east --cluster-region=eu-west-1 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234...`),
		Args: command.OneName("control plane, host:port,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			register.Endpoint = args[0]
			register.CertExpiration = time.Duration(seconds) * time.Second
			member := program.Karmada(memberContext)
			if err := complete(&register, member, cmd.Flags().Changed("karmada-agent-replicas")); err != nil {
				return err
			}
			if err := register.Run(cmd.Context()); err != nil || register.DryRun {
				return err
			}
			fmt.Fprintf(program.Out, "cluster(%s) is joined successfully\n", register.Name)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&memberContext, "context", "", command.MemberContextUsage)
	flags.StringVar(&register.Name, "cluster-name", "", "name of the cluster; the one that the kubeconfig gives it if empty")
	flags.StringVar(&register.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "namespace of the cluster's secrets in the control plane")
	flags.StringVarP(&register.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the agent in the member")
	flags.StringVar(&register.Provider, "cluster-provider", "", "provider of the cluster, for placements to refer to")
	flags.StringVar(&register.Region, "cluster-region", "", "region of the cluster, for placements to refer to")
	flags.StringSliceVar(&register.Zones, "cluster-zones", nil, "zones of the cluster, for placements to refer to")
	flags.StringVar(&register.Token, "token", "", "bootstrap token of the control plane")
	flags.StringSliceVar(&register.CAHashes, "discovery-token-ca-cert-hash", nil, "hash of the control plane's certificate authority, sha256:<hex>; one of several has to fit")
	flags.BoolVar(&register.SkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false, "do without the hash: whoever knows the token can then pose as the control plane")
	flags.DurationVar(&register.Timeout, "discovery-timeout", pull.DefaultRegisterTimeout, "how long to wait for the control plane, for the certificate, and for the agent")
	flags.Int32Var(&seconds, "cert-expiration-seconds", int32(pull.DefaultCertExpiration/time.Second), "life of the agent's certificate")
	flags.BoolVar(&register.CertRotation, "enable-cert-rotation", false, "let the agent renew its certificate in time")
	flags.StringVar(&register.Image, "karmada-agent-image", pull.DefaultAgentImage(), "image of the agent")
	flags.Int32Var(&register.Replicas, "karmada-agent-replicas", 1, "how many replicas of the agent run")
	flags.StringVar(&register.ProxyURL, "proxy-server-address", "", "proxy through which the control plane reaches the member")
	flags.StringVar(&register.MemberRole, "member-role", "", "ClusterRole of the member that limits what the agent may do there; empty lets it do everything")
	flags.BoolVar(&register.DryRun, "dry-run", false, "check everything and change nothing")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, _ := program.Karmada("").Contexts()
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// complete opens the member and checks what was typed, before anything is read.
func complete(register *pull.Register, member command.Access, replicasGiven bool) (err error) {
	if register.Token == "" {
		return command.Wrong("--token is missing: token create --print-register-command in the control plane tells the whole command")
	}
	if len(register.CAHashes) == 0 && !register.SkipCAVerification {
		return command.Wrong("--discovery-token-ca-cert-hash is missing: token create --print-register-command in the control plane tells it. Without it, which is not safe: --discovery-token-unsafe-skip-ca-verification")
	}
	if replicasGiven && register.Replicas < 1 {
		return command.Wrong("--karmada-agent-replicas must be at least 1, not %d", register.Replicas)
	}
	if register.Member, register.MemberOrigin, err = member.MemberConfig(register.Name); err != nil {
		return err
	}
	if register.Name == "" {
		if register.Name, err = clusterOf(member); err != nil {
			return err
		}
	}
	register.Endpoint = strings.TrimSuffix(strings.TrimPrefix(register.Endpoint, "https://"), "/")
	if err := register.Validate(); err != nil {
		return command.Wrong("%w", err)
	}
	return nil
}

// clusterOf is the name that the kubeconfig gives the cluster of the context that is
// taken for the member.
func clusterOf(member command.Access) (string, error) {
	config, err := member.Loader().RawConfig()
	if err != nil {
		return "", fmt.Errorf("the member: %w", err)
	}
	name := command.ChooseContext(&config, member.Context, "").Context
	context := config.Contexts[name]
	if context == nil || context.Cluster == "" {
		return "", command.Wrong("--cluster-name is missing, and context %q of the kubeconfig names no cluster", name)
	}
	if err := registration.ValidateName(context.Cluster); err != nil {
		return "", command.Wrong("the kubeconfig calls the cluster %q, which no Cluster can be called: choose a name with --cluster-name (%w)", context.Cluster, err)
	}
	return context.Cluster, nil
}
