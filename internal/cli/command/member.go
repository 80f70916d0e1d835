package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// MemberContextUsage is the help text of the flags that select a member by the rule
// of ChooseContext.
const MemberContextUsage = "context of the member in its kubeconfig; if empty the one with the name of the cluster, else the only one, else the current one"

// Member holds the flags that choose a member by a kubeconfig of its own.
type Member struct{ Access }

// AddFlags adds the flags.
func (m *Member) AddFlags(p *Program, cmd *cobra.Command, contextUsage string) {
	cmd.Flags().StringVar(&m.Path, "cluster-kubeconfig", "", "kubeconfig of the member")
	cmd.Flags().StringVar(&m.Context, "cluster-context", "", contextUsage)
	_ = cmd.MarkFlagFilename("cluster-kubeconfig")
	p.completeContexts(cmd, "cluster-context", func() string { return m.Path })
}

// ContextChoice is the context of a kubeconfig that leads to a member.
type ContextChoice struct {
	// Context is its name. It is empty if the kubeconfig has no current context and
	// no other rule selects one.
	Context string
	// Reason explains the choice to the user. It is empty for a context that the user
	// named.
	Reason string
}

// ChooseContext selects the context that leads to the member cluster: the context
// that the user named, else the context with the name of the cluster, else the only
// context of the kubeconfig, else the current context. An empty cluster matches no
// name. The named context is returned even if the kubeconfig does not have it.
func ChooseContext(config *clientcmdapi.Config, named, cluster string) ContextChoice {
	contexts := slices.Sorted(maps.Keys(config.Contexts))
	switch {
	case named != "":
		return ContextChoice{Context: named}
	case cluster != "" && slices.Contains(contexts, cluster):
		return ContextChoice{Context: cluster, Reason: "it has the name of the cluster"}
	case len(contexts) == 1:
		return ContextChoice{Context: contexts[0], Reason: "it is the only one"}
	case config.CurrentContext == "":
		return ContextChoice{}
	case cluster == "":
		return ContextChoice{Context: config.CurrentContext, Reason: "it is the current one"}
	default:
		return ContextChoice{Context: config.CurrentContext, Reason: fmt.Sprintf("it is the current one; none has the name %q", cluster)}
	}
}

// MemberConfig returns the client configuration of the member cluster. The context is
// that of ChooseContext. The origin names context and kubeconfig for messages; it is
// empty if there is no kubeconfig, as in a Pod.
func (a Access) MemberConfig(cluster string) (config *rest.Config, origin string, err error) {
	loaded, err := a.rules().Load()
	if err != nil {
		return nil, "", fmt.Errorf("the member: %w", a.explain(err))
	}
	choice := ChooseContext(loaded, a.Context, cluster)
	a.Context = choice.Context
	if config, err = a.Config(); err != nil {
		return nil, "", fmt.Errorf("the member: %w", err)
	}
	return config, a.origin(loaded, choice), nil
}

// origin names the chosen context, the kubeconfig that has it, and the reason of the
// choice.
func (a Access) origin(config *clientcmdapi.Config, choice ContextChoice) string {
	context := config.Contexts[choice.Context]
	if context == nil {
		return ""
	}
	file := context.LocationOfOrigin
	if file == "" {
		file = strings.Join(a.rules().GetLoadingPrecedence(), ", ")
	}
	origin := fmt.Sprintf("context %q of kubeconfig %s", choice.Context, file)
	if choice.Reason != "" {
		origin += " (" + choice.Reason + ")"
	}
	return origin
}
