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
)

// Limits of the requests of one command.
const (
	QueriesPerSecond = 50
	Burst            = 300
)

// Access is a way into a cluster as flags describe it: a context of a kubeconfig.
type Access struct {
	// Path is the kubeconfig; empty means $KUBECONFIG, else ~/.kube/config.
	Path string
	// Context is the context in it; empty means the current one.
	Context string
	// As is whom to act as; the zero value is nobody else.
	As rest.ImpersonationConfig
}

// Karmada is the way into the control plane.
func (p *Program) Karmada(context string) Access {
	return Access{Path: p.Kubeconfig, Context: context, As: p.As}
}

// AddGlobalFlags adds the flags with which every command chooses the control plane
// and the user there.
func (p *Program) AddGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.Kubeconfig, "kubeconfig", "", "kubeconfig of the control plane; if empty $KUBECONFIG, else ~/.kube/config")
	flags.Var(contextFlag{p}, "context", "context in the kubeconfig; the current one if empty. Same as --karmada-context")
	p.completeContexts(root, "context", func() string { return p.Kubeconfig })
	flags.StringVar(&p.As.UserName, "as", "", "user to impersonate")
	flags.StringArrayVar(&p.As.Groups, "as-group", nil, "group to impersonate, together with --as; can be repeated")
	flags.StringVar(&p.As.UID, "as-uid", "", "UID to impersonate, together with --as")
}

// CheckGlobalFlags returns an error of usage when global flags do not fit together.
func (p *Program) CheckGlobalFlags() error {
	if p.As.UserName == "" && (len(p.As.Groups) > 0 || p.As.UID != "") {
		return Wrong("--as-group and --as-uid need --as, the name of the user")
	}
	return nil
}

// Impersonating returns the user of flags that only one command has, or else that of
// the global flags.
func (p *Program) Impersonating(as rest.ImpersonationConfig) rest.ImpersonationConfig {
	if as.UserName == "" {
		return p.As
	}
	return as
}

// contextFlag is the value of --context. It sets what --karmada-context sets, for
// every command, so that the last of both flags counts.
type contextFlag struct{ program *Program }

// String returns nothing: the value is kept by the commands.
func (f contextFlag) String() string { return "" }

// Type returns the name of the type in help.
func (f contextFlag) Type() string { return "string" }

// Set sets the context of all commands.
func (f contextFlag) Set(context string) error {
	for _, target := range f.program.contexts {
		*target = context
	}
	return nil
}

// AddKarmadaContext adds the flag that chooses the control plane, for the command
// and those below it.
func (p *Program) AddKarmadaContext(cmd *cobra.Command, context *string) {
	p.contexts = append(p.contexts, context)
	p.AddContext(cmd, "karmada-context", context, "context of the control plane in the kubeconfig; the current one if empty", func() string { return p.Kubeconfig })
}

// AddContext adds a flag that chooses a context of the kubeconfig at path, for the
// command and those below it.
func (p *Program) AddContext(cmd *cobra.Command, flag string, context *string, usage string, path func() string) {
	cmd.PersistentFlags().StringVar(context, flag, "", usage)
	p.completeContexts(cmd, flag, path)
}

// AddImpersonation adds the flags that say whom to act as in the control plane.
func AddImpersonation(flags *pflag.FlagSet, as *rest.ImpersonationConfig) {
	flags.StringVar(&as.UserName, "karmada-as", "", "user to impersonate in the control plane")
	flags.StringArrayVar(&as.Groups, "karmada-as-group", nil, "group to impersonate in the control plane; can be repeated")
	flags.StringVar(&as.UID, "karmada-as-uid", "", "UID to impersonate in the control plane")
}

// Config is the client configuration. A context that does not exist is an error
// that lists those that do.
func (a Access) Config() (*rest.Config, error) {
	config, err := a.Loader().ClientConfig()
	if err != nil {
		return nil, a.explain(err)
	}
	config.QPS, config.Burst = QueriesPerSecond, Burst
	return config, nil
}

// Loader reads the kubeconfig when it is asked.
func (a Access) Loader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.Context}
	overrides.AuthInfo.Impersonate = a.As.UserName
	overrides.AuthInfo.ImpersonateUID = a.As.UID
	overrides.AuthInfo.ImpersonateGroups = a.As.Groups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.rules(), overrides)
}

// Contexts are the names of the contexts, sorted.
func (a Access) Contexts() ([]string, error) {
	config, err := a.rules().Load()
	if err != nil {
		return nil, a.explain(err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

func (a Access) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Path
	return rules
}

func (a Access) explain(err error) error {
	files := a.rules().GetLoadingPrecedence()
	where := strings.Join(files, ", ")
	if !slices.ContainsFunc(files, exists) {
		return fmt.Errorf("there is no kubeconfig %s: name the right file with its flag or in $KUBECONFIG", where)
	}
	config, loadErr := a.rules().Load()
	if loadErr != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", where, loadErr)
	}
	return badContext(config, where, a.Context, err)
}

// exists is true also of a file that cannot be looked at: reading it tells why.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// badContext says which context was meant and which ones there are.
func badContext(config *clientcmdapi.Config, where, context string, err error) error {
	there := strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
	switch {
	case there == "":
		return fmt.Errorf("kubeconfig %s has no contexts: name the right file with its flag or in $KUBECONFIG", where)
	case context == "" && config.CurrentContext == "":
		return fmt.Errorf("kubeconfig %s has no current context: choose one of %s", where, there)
	case context == "":
		context = config.CurrentContext
	}
	if config.Contexts[context] == nil {
		return fmt.Errorf("kubeconfig %s has no context %q: choose one of %s", where, context, there)
	}
	return fmt.Errorf("context %q of kubeconfig %s: %w", context, where, err)
}
