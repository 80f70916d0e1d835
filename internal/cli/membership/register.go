package membership

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
)

// NewRegister returns the command that registers a cluster in pull mode.
func NewRegister(program *command.Program) *cobra.Command {
	var (
		memberContext string
		seconds       int32
		register      = pull.Register{Log: program.Messagef}
	)
	cmd := &cobra.Command{
		Use:   "register [karmada-apiserver-endpoint]",
		Short: "Register a cluster in pull mode, with an agent",
		Long: `Register a cluster in pull mode: an agent in the cluster connects to the control plane.

Run the command where the member's API server is reachable. The agent must be able to
reach the control plane; the control plane need not reach the member. The command needs a
token: "token create --print-register-command" creates one and prints this command.
If the registration fails, the command deletes the objects that it created in both clusters.`,
		Example: program.Examples(`
			# Register the cluster of the current context under its name in the kubeconfig
			{{program}} register 192.0.2.1:5443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234...

			# Register the cluster of another context as "east" in a region
			{{program}} register 192.0.2.1:5443 --context=prod-east --cluster-name=east --cluster-region=eu-west-1 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234...`),
		Args: command.RequireOneName("control plane, host:port,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			register.Endpoint = args[0]
			register.CertExpiration = time.Duration(seconds) * time.Second
			member := program.KarmadaKubeconfig(memberContext)
			if err := completeRegister(&register, member, cmd.Flags().Changed("karmada-agent-replicas")); err != nil {
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
	flags.StringVar(&register.Name, "cluster-name", "", "name of the cluster; its name in the kubeconfig if empty")
	flags.StringVar(&register.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster,
		"namespace of the cluster's secrets in the control plane")
	flags.StringVarP(&register.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the agent in the member")
	flags.StringVar(&register.Provider, "cluster-provider", "", "provider of the cluster, for placements to refer to")
	flags.StringVar(&register.Region, "cluster-region", "", "region of the cluster, for placements to refer to")
	flags.StringSliceVar(&register.Zones, "cluster-zones", nil, "zones of the cluster, for placements to refer to")
	flags.StringVar(&register.Token, "token", "", "bootstrap token of the control plane")
	flags.StringSliceVar(&register.CAHashes, "discovery-token-ca-cert-hash", nil,
		"hash of the control plane's certificate authority, sha256:<hex>; with several hashes one must match")
	flags.BoolVar(&register.SkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"do not require the hash: anyone who knows the token can then impersonate the control plane")
	flags.DurationVar(&register.Timeout, "discovery-timeout", pull.DefaultRegisterTimeout,
		"how long to wait for the control plane, for the certificate, and for the agent")
	flags.Int32Var(&seconds, "cert-expiration-seconds", int32(pull.DefaultCertExpiration/time.Second), "lifetime of the agent's certificate")
	flags.BoolVar(&register.CertRotation, "enable-cert-rotation", false, "let the agent renew its certificate before it expires")
	flags.StringVar(&register.Image, "karmada-agent-image", pull.DefaultAgentImage(), "image of the agent")
	flags.Int32Var(&register.Replicas, "karmada-agent-replicas", 1, "number of replicas of the agent")
	flags.StringVar(&register.ProxyURL, "proxy-server-address", "", "proxy through which the control plane reaches the member")
	flags.StringVar(&register.MemberRole, "member-role", "",
		"ClusterRole of the member that limits the permissions of the agent there; if empty, it has all permissions")
	flags.BoolVar(&register.DryRun, "dry-run", false, "validate everything without changing objects")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, _ := program.KarmadaKubeconfig("").Contexts()
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// completeRegister validates the flags and sets the fields that depend on the member's kubeconfig. It sends no request.
func completeRegister(register *pull.Register, member command.Kubeconfig, isReplicasSet bool) (err error) {
	if register.Token == "" {
		return command.NewUsageError("--token is missing: token create --print-register-command prints the whole command")
	}
	if len(register.CAHashes) == 0 && !register.SkipCAVerification {
		return command.NewUsageError("--discovery-token-ca-cert-hash is missing: token create --print-register-command prints it. To register without it, which is not safe, use --discovery-token-unsafe-skip-ca-verification")
	}
	if isReplicasSet && register.Replicas < 1 {
		return command.NewUsageError("--karmada-agent-replicas must be at least 1, not %d", register.Replicas)
	}
	if err := rendering.ValidateImage(register.Image); register.Image != "" && register.Image != pull.DefaultAgentImage() && err != nil {
		return command.NewUsageError("--karmada-agent-image %q: %w", register.Image, err)
	}
	if register.Member, register.MemberOrigin, err = member.MemberConfig(register.Name); err != nil {
		return err
	}
	if register.Name == "" {
		if register.Name, err = clusterNameOf(member); err != nil {
			return err
		}
	}
	register.Endpoint = strings.TrimSuffix(strings.TrimPrefix(register.Endpoint, "https://"), "/")
	if err := register.Validate(); err != nil {
		return command.NewUsageError("%w", err)
	}
	return nil
}

// clusterNameOf returns the name that the member's kubeconfig gives to the cluster of the selected context.
func clusterNameOf(member command.Kubeconfig) (string, error) {
	config, err := member.Loader().RawConfig()
	if err != nil {
		return "", fmt.Errorf("the member: %w", err)
	}
	name := command.ChooseContext(&config, member.Context, "").Context
	context := config.Contexts[name]
	if context == nil || context.Cluster == "" {
		return "", command.NewUsageError("--cluster-name is missing, and context %q of the kubeconfig has no cluster", name)
	}
	if err := registration.ValidateName(context.Cluster); err != nil {
		return "", command.NewUsageError("the name %q of the cluster in the kubeconfig is not a valid name: choose a name with --cluster-name (%w)", context.Cluster, err)
	}
	return context.Cluster, nil
}
