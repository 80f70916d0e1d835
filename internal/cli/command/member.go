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

// MemberContextUsage is the help text of the flags that select a member context with
// ChooseContext.
const MemberContextUsage = "context of the member in its kubeconfig; if empty, the context with the name of the cluster, the only context, or the current context, in this order"

// MemberFlags are the flags that select a member by the member's own kubeconfig.
type MemberFlags struct{ Kubeconfig }

// AddFlags adds the flags.
func (m *MemberFlags) AddFlags(p *Program, cmd *cobra.Command, contextUsage string) {
	cmd.Flags().StringVar(&m.Path, "cluster-kubeconfig", "", "kubeconfig of the member")
	cmd.Flags().StringVar(&m.Context, "cluster-context", "", contextUsage)
	_ = cmd.MarkFlagFilename("cluster-kubeconfig")
	p.completeContexts(cmd, "cluster-context", func() string { return m.Path })
}

// ContextChoice is the context that ChooseContext selects for a member.
type ContextChoice struct {
	// Context is the name of the context. It is empty if no rule selects one.
	Context string
	// Reason explains to the user why the context was selected. It is empty if the user named the
	// context.
	Reason string
}

// ChooseContext selects the context of the member cluster. The first rule that selects a context applies: the context that
// the user named, the context with the name of the cluster, the only context of the kubeconfig, the current context.
// cluster may be empty. ChooseContext returns a named context even if the kubeconfig does not contain it.
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

// MemberConfig returns the client configuration of the member cluster in the context that ChooseContext selects. origin
// describes this context for messages; it is empty if there is no kubeconfig, for example in a Pod.
func (k Kubeconfig) MemberConfig(cluster string) (config *rest.Config, origin string, err error) {
	loaded, err := k.loadingRules().Load()
	if err != nil {
		return nil, "", fmt.Errorf("the member: %w", k.explainError(err))
	}
	choice := ChooseContext(loaded, k.Context, cluster)
	k.Context = choice.Context
	if config, err = k.Config(); err != nil {
		return nil, "", fmt.Errorf("the member: %w", err)
	}
	return config, k.describeOrigin(loaded, choice), nil
}

// describeOrigin describes the selected context, its kubeconfig, and why it was selected.
func (k Kubeconfig) describeOrigin(config *clientcmdapi.Config, choice ContextChoice) string {
	context := config.Contexts[choice.Context]
	if context == nil {
		return ""
	}
	file := context.LocationOfOrigin
	if file == "" {
		file = strings.Join(k.loadingRules().GetLoadingPrecedence(), ", ")
	}
	origin := fmt.Sprintf("context %q of kubeconfig %s", choice.Context, file)
	if choice.Reason != "" {
		origin += " (" + choice.Reason + ")"
	}
	return origin
}
