package command

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/console"
)

// The client-side rate limit of one command.
const (
	QueriesPerSecond = 50
	Burst            = 300
)

// Kubeconfig selects a cluster by a context of a kubeconfig.
type Kubeconfig struct {
	// Path is the path of the file. Empty means $KUBECONFIG, or ~/.kube/config if $KUBECONFIG is
	// empty too.
	Path string
	// Context is the name of the context. Empty means the current context.
	Context string
	// As is the user to impersonate. The zero value means no impersonation.
	As rest.ImpersonationConfig
}

// Host selects an installation in a host cluster.
type Host struct {
	Kubeconfig
	// Namespace is the namespace of the installation.
	Namespace string
}

// AddFlags adds the flags. content is what the namespace contains, for the help text.
func (h *Host) AddFlags(p *Program, cmd *cobra.Command, content string) {
	flags := cmd.Flags()
	flags.StringVar(&h.Path, "kubeconfig", "", "kubeconfig of the host cluster; if empty, $KUBECONFIG or ~/.kube/config")
	_ = cmd.MarkFlagFilename("kubeconfig")
	p.AddContext(cmd, "context", &h.Context, "context of the host cluster in its kubeconfig; the current context if empty",
		func() string { return h.Path })
	flags.StringVarP(&h.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem,
		"namespace of the "+content+" in the host cluster")
}

// KarmadaKubeconfig returns the kubeconfig of the control plane with the given context.
func (p *Program) KarmadaKubeconfig(context string) Kubeconfig {
	return Kubeconfig{Path: p.Kubeconfig, Context: context, As: p.As}
}

// WithKarmada returns the command line of verb with the flags that select the control plane, as the user set them. The
// user can paste it into a shell.
func (p *Program) WithKarmada(verb, context string) string {
	words := []string{p.Name, verb}
	if p.Kubeconfig != "" {
		words = append(words, "--kubeconfig="+console.ShellWord(p.Kubeconfig))
	}
	if context != "" {
		words = append(words, "--karmada-context="+console.ShellWord(context))
	}
	return strings.Join(words, " ")
}

// AddGlobalFlags adds the flags that select the control plane and the user for all commands.
func (p *Program) AddGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.Kubeconfig, "kubeconfig", "", "kubeconfig of the control plane; if empty, $KUBECONFIG or ~/.kube/config")
	flags.Var(contextFlag{p}, "context", "context in the kubeconfig; the current context if empty. Same as --karmada-context")
	p.completeContexts(root, "context", func() string { return p.Kubeconfig })
	flags.StringVar(&p.As.UserName, "as", "", "user to impersonate")
	flags.StringArrayVar(&p.As.Groups, "as-group", nil, "group to impersonate, together with --as; can be repeated")
	flags.StringVar(&p.As.UID, "as-uid", "", "UID to impersonate, together with --as")
}

// ValidateGlobalFlags returns a usage error if global flags contradict each other.
func (p *Program) ValidateGlobalFlags() error {
	if p.As.UserName == "" && (len(p.As.Groups) > 0 || p.As.UID != "") {
		return NewUsageError("--as-group and --as-uid need --as, the name of the user")
	}
	return nil
}

// ResolveImpersonation returns as, the user in the flags of one command. If it is not set, it returns the user in the
// global flags.
func (p *Program) ResolveImpersonation(as rest.ImpersonationConfig) rest.ImpersonationConfig {
	if as.UserName == "" {
		return p.As
	}
	return as
}

// contextFlag is the value of --context. It sets the variables of --karmada-context, so that the last of both flags takes
// effect.
type contextFlag struct{ program *Program }

// String returns an empty string, because the commands store the value.
func (c contextFlag) String() string { return "" }

// Type returns the name of the type in help.
func (c contextFlag) Type() string { return "string" }

// Set sets the context of all commands.
func (c contextFlag) Set(context string) error {
	for _, target := range c.program.contextTargets {
		*target = context
	}
	return nil
}

// AddKarmadaContext adds the flag that selects the control plane for the command and its
// subcommands.
func (p *Program) AddKarmadaContext(cmd *cobra.Command, context *string) {
	p.contextTargets = append(p.contextTargets, context)
	p.AddContext(cmd, "karmada-context", context, "context of the control plane in the kubeconfig; the current context if empty",
		func() string { return p.Kubeconfig })
}

// AddContext adds a flag that selects a context in the kubeconfig at path, for the command and its subcommands.
func (p *Program) AddContext(cmd *cobra.Command, flag string, context *string, usage string, path func() string) {
	cmd.PersistentFlags().StringVar(context, flag, "", usage)
	p.completeContexts(cmd, flag, path)
}

// AddImpersonation adds the flags that set the user to impersonate in the control plane.
func AddImpersonation(flags *pflag.FlagSet, as *rest.ImpersonationConfig) {
	flags.StringVar(&as.UserName, "karmada-as", "", "user to impersonate in the control plane")
	flags.StringArrayVar(&as.Groups, "karmada-as-group", nil, "group to impersonate in the control plane; can be repeated")
	flags.StringVar(&as.UID, "karmada-as-uid", "", "UID to impersonate in the control plane")
}

// Config returns the client configuration. If the context does not exist, the error lists
// the existing contexts.
func (k Kubeconfig) Config() (*rest.Config, error) {
	config, err := k.Loader().ClientConfig()
	if err != nil {
		return nil, k.explainError(err)
	}
	config.QPS, config.Burst = QueriesPerSecond, Burst
	return config, nil
}

// Loader returns a loader that reads the kubeconfig on first use.
func (k Kubeconfig) Loader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	overrides.AuthInfo.Impersonate = k.As.UserName
	overrides.AuthInfo.ImpersonateUID = k.As.UID
	overrides.AuthInfo.ImpersonateGroups = k.As.Groups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.loadingRules(), overrides)
}

// Contexts returns the names of the contexts, sorted.
func (k Kubeconfig) Contexts() ([]string, error) {
	config, err := k.loadingRules().Load()
	if err != nil {
		return nil, k.explainError(err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

func (k Kubeconfig) loadingRules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	return rules
}

// MissingKubeconfigError means that no kubeconfig exists. Files are the paths that were tried.
type MissingKubeconfigError struct{ Files string }

// Error implements error.
func (m *MissingKubeconfigError) Error() string {
	return fmt.Sprintf("there is no kubeconfig %s: set the right file with its flag or in $KUBECONFIG", m.Files)
}

// explainError returns the reason why the kubeconfig cannot be used: no file, an invalid file, or an unknown context.
func (k Kubeconfig) explainError(err error) error {
	files := k.loadingRules().GetLoadingPrecedence()
	where := strings.Join(files, ", ")
	if !slices.ContainsFunc(files, fileExists) {
		return &MissingKubeconfigError{Files: where}
	}
	config, loadErr := k.loadingRules().Load()
	if loadErr != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", where, loadErr)
	}
	return contextError(config, where, k.Context, err)
}

// fileExists reports whether the file exists. It returns true for a file that cannot be read, because the error of the
// later read is more precise.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// contextError returns an error that names the missing context and the existing contexts.
func contextError(config *clientcmdapi.Config, where, context string, err error) error {
	existing := strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
	switch {
	case existing == "":
		return fmt.Errorf("kubeconfig %s has no contexts: set the right file with its flag or in $KUBECONFIG", where)
	case context == "" && config.CurrentContext == "":
		return fmt.Errorf("kubeconfig %s has no current context: choose one of %s", where, existing)
	case context == "":
		context = config.CurrentContext
	}
	if config.Contexts[context] == nil {
		return fmt.Errorf("kubeconfig %s has no context %q: choose one of %s", where, context, existing)
	}
	return fmt.Errorf("context %q of kubeconfig %s: %w", context, where, err)
}
