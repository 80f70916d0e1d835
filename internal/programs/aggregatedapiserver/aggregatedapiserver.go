// Package aggregatedapiserver runs the API server of Clusters, as the program karmada-aggregated-apiserver or in
// the process of a control plane.
//
// The program stores Clusters in any etcd, behind the aggregation layer of any kube-apiserver. Replicas need no
// leader election, because all state is in etcd.
package aggregatedapiserver

import (
	"context"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/extension"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/aggregated"
)

// New returns the component. The option --feature-gates of its program accepts the gates of
// Karmada and the gates of the API server library.
func New(*gates.Set) programs.Component {
	inProcess := &InProcess{Agents: aggregated.DefaultAgentOptions()}
	return programs.Component{
		Name: programs.AggregatedAPIServer, Help: "serves the Cluster API and proxies requests to member clusters",
		Options: inProcess, Server: &programs.Server{New: inProcess.newServer, APIServices: []string{aggregated.APIServiceName}},
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return newProgram(set) }, OwnGates: true,
	}
}

func newProgram(set *gates.Set) *extension.Program[*aggregated.Options] {
	options, err := aggregated.NewOptions()
	if err == nil {
		options.Gates = set
	}
	return extension.NewProgram(programs.AggregatedAPIServer, options, err,
		func(ctx context.Context, options *aggregated.Options, _ *pflag.FlagSet) (func(context.Context) error, error) {
			server, err := aggregated.New(ctx, options)
			if err != nil {
				return nil, err
			}
			return server.Run, nil
		})
}
