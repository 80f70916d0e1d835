package apiservers

import (
	"context"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
)

// AggregatedInProcess are the options of the server in the process of a control plane.
type AggregatedInProcess struct {
	// Reviewer has the admission rules of the server. The server applies the rules itself, because
	// there is no webhook for it in the process.
	Reviewer admission.Reviewer
	// Agents limit what agents may write in their Clusters.
	Agents aggregated.AgentOptions
}

// AddFlags implements programs.Options.
func (i *AggregatedInProcess) AddFlags(set *pflag.FlagSet) { i.Agents.AddFlags(set) }

// Validate implements programs.Options.
func (*AggregatedInProcess) Validate() error { return nil }

// SetReviewer sets the admission rules.
func (i *AggregatedInProcess) SetReviewer(reviewer admission.Reviewer) { i.Reviewer = reviewer }

// newServer returns the server. The server uses the etcd of the control plane.
func (i *AggregatedInProcess) newServer(ctx context.Context, control programs.ControlPlane) (*programs.RunningServer, error) {
	options, err := i.NewOptions(control)
	if err != nil {
		return nil, err
	}
	server, err := aggregated.New(ctx, options)
	if err != nil {
		return nil, err
	}
	return &programs.RunningServer{Run: server.Run, Ready: server.Ready()}, nil
}

// NewOptions returns the options of the server.
func (i *AggregatedInProcess) NewOptions(control programs.ControlPlane) (*aggregated.Options, error) {
	options, err := aggregated.NewOptions()
	if err != nil {
		return nil, err
	}
	options.Agents = i.Agents
	plugins := options.Server.Admission
	admission.Register(plugins.Plugins, i.Reviewer)
	plugins.RecommendedPluginOrder = append(plugins.RecommendedPluginOrder, admission.PluginName)
	return options, UseControlPlane(&options.Options, control)
}
