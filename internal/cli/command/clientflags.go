package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/registration"
)

// ClientFlags are the flags that determine how a command connects to its targets.
type ClientFlags struct {
	Program *Program
	// Kubeconfig replaces the kubeconfig of the program unless it is empty.
	Kubeconfig string
	// Context is the context of the control plane. Empty means the current context.
	Context string
	// Namespace is the default namespace of objects. Empty means the context's namespace.
	Namespace string

	// IsMemberContext is true if Context is a member's context. The impersonation flags then have no effect, because
	// they name users of the control plane.
	IsMemberContext bool

	// setTarget sets the target from the flags. Shell completion calls it before it completes names of objects.
	setTarget func()
}

// AddFlags adds the flags that select the control plane for the command and its subcommands.
func (c *ClientFlags) AddFlags(cmd *cobra.Command) {
	c.Program.AddKarmadaContext(cmd, &c.Context)
}

// AddNamespaceFlag adds the flag --namespace.
func (c *ClientFlags) AddNamespaceFlag(cmd *cobra.Command, factory cmdutil.Factory) {
	cmd.PersistentFlags().StringVarP(&c.Namespace, "namespace", "n", "", "namespace; the namespace of the context if empty")
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return completion.CompGetResource(factory, "namespaces", prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// NewFactory returns a factory of clients for the target. The factory reads the flags and the target when it creates
// the first client, so both can still change until then. timeout limits each request, also watches; 0 means no limit.
func (c *ClientFlags) NewFactory(target *Target, timeout time.Duration) cmdutil.Factory {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(QueriesPerSecond).WithDiscoveryBurst(Burst)
	flags.KubeConfig, flags.Context, flags.Namespace = &c.Program.Kubeconfig, &c.Context, &c.Namespace
	if !c.IsMemberContext {
		flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = &c.Program.As.UserName, &c.Program.As.UID, &c.Program.As.Groups
	}
	if c.Kubeconfig != "" {
		flags.KubeConfig = &c.Kubeconfig
	}
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if c.Program.IsCompletion && c.setTarget != nil {
			c.setTarget()
		}
		config.QPS, config.Burst = QueriesPerSecond, Burst
		config.Host = target.host(config.Host)
		config.Timeout = timeout
		if c.Program.IsCompletion {
			config.Timeout = CompletionTimeout
		}
		config.WarningHandler = c.Program
		return config
	}
	// NewMatchVersionFlags adds settings that commands with streams require.
	return cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
}

// VerifyKubeconfig returns an error if the kubeconfig or the context of the control plane
// does not exist. The error lists the existing contexts.
func (c *ClientFlags) VerifyKubeconfig() error {
	_, err := c.Program.KarmadaKubeconfig(c.Context).Config()
	return err
}

// ClusterClient returns a client of the Clusters in the control plane.
func (c *ClientFlags) ClusterClient() (ClusterClient, error) {
	config, err := c.Program.KarmadaKubeconfig(c.Context).Config()
	if err != nil {
		return ClusterClient{}, err
	}
	return NewClusterClient(config)
}

// LoadRules returns the interpreter with the configuration of the control plane. If the caller has no permission to read
// the configuration, it prints a note and returns the interpreter with the built-in rules only.
func (c *ClientFlags) LoadRules(ctx context.Context, o interpreters.Options) (*interpreters.Interpreter, error) {
	config, err := c.Program.KarmadaKubeconfig(c.Context).Config()
	if err != nil {
		return nil, err
	}
	rules, err := interpreters.NewLoaded(ctx, config, o)
	if apierrors.IsForbidden(err) {
		c.Program.Messagef("note: only the built-in interpreter rules are used: %v", err)
		return interpreters.New(o)
	}
	return rules, err
}

// ListMembers returns the wanted members sorted by name, or all members if wanted is empty. If a
// wanted member does not exist, the error lists the existing members.
func (c *ClientFlags) ListMembers(ctx context.Context, wanted []string) ([]Target, error) {
	clusters, err := c.ClusterClient()
	if err != nil {
		return nil, err
	}
	existing, err := clusters.Names(ctx)
	if apierrors.IsForbidden(err) && len(wanted) > 0 {
		return getNamedMembers(ctx, clusters, wanted)
	}
	if err != nil {
		return nil, err
	}
	if err := VerifyClustersExist(wanted, existing); err != nil {
		return nil, err
	}
	var found []Target
	for _, name := range existing {
		if len(wanted) == 0 || slices.Contains(wanted, name) {
			found = append(found, Target{Cluster: name})
		}
	}
	return found, nil
}

// getNamedMembers reads the wanted members one by one, for a user who has the permission to get Clusters but not to list
// them.
func getNamedMembers(ctx context.Context, clusters ClusterClient, wanted []string) ([]Target, error) {
	sorted := slices.Sorted(slices.Values(wanted))
	var found []Target
	for _, name := range slices.Compact(sorted) {
		if _, err := clusters.Get(ctx, name); err != nil {
			return nil, err
		}
		found = append(found, Target{Cluster: name})
	}
	return found, nil
}

// VerifyReachable returns an error if the target does not respond. Without it, discovery would fail several times
// before it returns an error.
func VerifyReachable(ctx context.Context, factory cmdutil.Factory, target Target) error {
	api, err := factory.RESTClient()
	if err != nil {
		return err
	}
	err = api.Get().AbsPath("/api").Do(ctx).Error()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("reaching %s: %w", target, err)
	if advice := registration.Advice(err, target.String()); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}
