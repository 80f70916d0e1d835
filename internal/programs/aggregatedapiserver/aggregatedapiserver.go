// Package aggregatedapiserver answers "how does the API server of Clusters run as a separate
// program?": karmada-aggregated-apiserver stores Clusters in any etcd, behind the aggregation
// layer of any kube-apiserver.
//
// The program runs the same server as `karmada up`, but flags configure it. Replicas need no
// leader election, because all state is in etcd.
package aggregatedapiserver

import (
	"context"
	"errors"
	"net"

	"karmada.io/karmada/internal/programs/extension"

	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers the metrics of requests to the control plane

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
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
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return newOptions(set) }, OwnGates: true,
	}
}

// options are the parsed flags of the program.
type options struct {
	server *aggregated.Options
	flags  *pflag.FlagSet
	// initErr is the error of aggregated.NewOptions.
	initErr error
}

func newOptions(set *gates.Set) *options {
	server, err := aggregated.NewOptions()
	if err != nil {
		return &options{initErr: err}
	}
	server.Gates = set
	server.Server.SecureServing.BindAddress = net.ParseIP(podenvironment.DefaultListenAddress(net.IPv4zero.String()))
	return &options{server: server}
}

// AddFlags implements command.Options.
func (o *options) AddFlags(set *pflag.FlagSet) {
	if o.initErr == nil {
		o.flags = set
		o.server.AddFlags(set)
	}
}

// Validate implements command.Options. If the flags are valid, it applies --feature-gates.
func (o *options) Validate() error {
	if o.initErr != nil {
		return o.initErr
	}
	if errs := o.server.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return o.server.ApplyFeatureGates()
}

// Run implements command.Options.
func (o *options) Run(ctx context.Context) error {
	if err := command.RegisterBuildInfo(legacyregistry.Registerer()); err != nil {
		return err
	}
	if err := extension.Connect(&o.server.Options, o.flags, programs.AggregatedAPIServer); err != nil {
		return err
	}
	server, err := aggregated.New(ctx, o.server)
	if err != nil {
		return err
	}
	return extension.Run(ctx, o.server.Karmada, server.Run)
}
