package apiservers

import (
	"context"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/aggregated"
)

// NewAggregated returns the component karmada-aggregated-apiserver. The option --feature-gates of its program accepts the gates of
// Karmada and the gates of the API server library.
func NewAggregated(*gates.Set) programs.Component {
	inProcess := &AggregatedInProcess{Agents: aggregated.DefaultAgentOptions()}
	return programs.Component{
		Name: programs.AggregatedAPIServer, Help: "serves the Cluster API and proxies requests to member clusters",
		Options: inProcess, Server: &programs.Server{New: inProcess.newServer, APIServices: []string{aggregated.APIServiceName}},
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return newAggregatedProgram(set) }, OwnGates: true,
	}
}

func newAggregatedProgram(set *gates.Set) *Program[*aggregated.Options] {
	options, err := aggregated.NewOptions()
	if err == nil {
		options.Gates = set
	}
	return NewProgram(programs.AggregatedAPIServer, options, err,
		func(ctx context.Context, options *aggregated.Options, _ *pflag.FlagSet) (func(context.Context) error, error) {
			server, err := aggregated.New(ctx, options)
			if err != nil {
				return nil, err
			}
			return server.Run, nil
		})
}
