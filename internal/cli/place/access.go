package place

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

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
)

// Access is how one command reaches places, as its flags say.
type Access struct {
	Program *command.Program
	// Kubeconfig replaces that of the program, unless empty.
	Kubeconfig string
	// Context is the context of the control plane; empty means the current one.
	Context string
	// Namespace is where to look for objects that are named without one; empty
	// means that of the context.
	Namespace string

	// Direct says that the context is that of a member, not of the control plane. The
	// user to impersonate is one of the control plane.
	Direct bool

	// guess settles the place before names of it are completed.
	guess func()
}

// AddFlags adds the flags that choose the control plane. They hold for the
// subcommands also.
func (a *Access) AddFlags(cmd *cobra.Command) {
	a.Program.AddKarmadaContext(cmd, &a.Context)
}

// AddNamespace adds the flag of the namespace.
func (a *Access) AddNamespace(cmd *cobra.Command, factory cmdutil.Factory) {
	cmd.PersistentFlags().StringVarP(&a.Namespace, "namespace", "n", "", "namespace; that of the context if empty")
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return completion.CompGetResource(factory, "namespaces", begun), cobra.ShellCompDirectiveNoFileComp
	})
}

// Factory makes clients of a place. Neither the flags nor where are read before
// the first client is made. Each request ends after the limit, which also holds
// for watches; 0 means no limit.
func (a *Access) Factory(where *Place, limit time.Duration) cmdutil.Factory {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(command.QueriesPerSecond).WithDiscoveryBurst(command.Burst)
	flags.KubeConfig, flags.Context, flags.Namespace = &a.Program.Kubeconfig, &a.Context, &a.Namespace
	if !a.Direct {
		flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = &a.Program.As.UserName, &a.Program.As.UID, &a.Program.As.Groups
	}
	if a.Kubeconfig != "" {
		flags.KubeConfig = &a.Kubeconfig
	}
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if a.Program.Completing && a.guess != nil {
			a.guess()
		}
		config.QPS, config.Burst = command.QueriesPerSecond, command.Burst
		config.Host = where.host(config.Host)
		config.Timeout = limit
		if a.Program.Completing {
			config.Timeout = command.CompletionTimeout
		}
		config.WarningHandler = a.Program
		return config
	}
	// Commands that open streams count on what this adds to a configuration.
	return cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
}

// Check makes sure that the flags lead to a control plane. The error says which
// kubeconfigs and contexts there are.
func (a *Access) Check() error {
	_, err := a.Program.Karmada(a.Context).Config()
	return err
}

// Clusters are the Clusters of the control plane.
func (a *Access) Clusters() (command.Clusters, error) {
	config, err := a.Program.Karmada(a.Context).Config()
	if err != nil {
		return command.Clusters{}, err
	}
	return command.OpenClusters(config)
}

// Members are the wanted members by name, all if none is wanted. A wanted one
// that does not exist is an error that lists those that do.
func (a *Access) Members(ctx context.Context, wanted []string) ([]Place, error) {
	clusters, err := a.Clusters()
	if err != nil {
		return nil, err
	}
	existing, err := clusters.Names(ctx)
	if apierrors.IsForbidden(err) && len(wanted) > 0 {
		return named(ctx, clusters, wanted)
	}
	if err != nil {
		return nil, err
	}
	if err := command.Missing(wanted, existing); err != nil {
		return nil, err
	}
	var found []Place
	for _, name := range existing {
		if len(wanted) == 0 || slices.Contains(wanted, name) {
			found = append(found, Place{Cluster: name})
		}
	}
	return found, nil
}

// named are members by name for one who may see these and not list all.
func named(ctx context.Context, clusters command.Clusters, wanted []string) ([]Place, error) {
	sorted := slices.Sorted(slices.Values(wanted))
	var found []Place
	for _, name := range slices.Compact(sorted) {
		if _, err := clusters.Get(ctx, name); err != nil {
			return nil, err
		}
		found = append(found, Place{Cluster: name})
	}
	return found, nil
}

// Reach makes sure that a place answers, before its types are looked up: that
// would take several failures to give up.
func Reach(ctx context.Context, factory cmdutil.Factory, where Place) error {
	api, err := factory.RESTClient()
	if err != nil {
		return err
	}
	err = api.Get().AbsPath("/api").Do(ctx).Error()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("reaching %s: %w", where, err)
	if advice := registration.Advice(err, where.String()); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}
