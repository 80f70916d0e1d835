// Package estimator runs a member's estimator: the program karmada-scheduler-estimator serves
// the free capacity of one member to the scheduler.
//
// The program reads the API server of the member, and never the control plane. Replicas need no
// leader election, because they write nothing.
package estimator

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/estimator"
)

// New returns the component. It runs as a program of its own, because it belongs to one member and
// not to the control plane.
func New(_ *gates.Set) programs.Component {
	return programs.Component{
		Name: programs.SchedulerEstimator, Help: "reports to the scheduler how many replicas fit into one member cluster",
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return NewOptions(set) },
	}
}

// Run serves until ctx ends. It implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	member, err := o.Connection.Config(programs.SchedulerEstimator)
	if err != nil {
		return err
	}
	registry, err := command.NewMetricsRegistry()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.address())
	if err != nil {
		return fmt.Errorf("listening on %s, see --server-port: %w", o.address(), err)
	}
	return o.serve(ctx, member, listener, registry)
}

// serve serves estimates, health and metrics.
func (o *Options) serve(ctx context.Context, member *rest.Config, listener net.Listener, registry *prometheus.Registry) error {
	defer listener.Close()
	status := command.ServerGroup{}
	if err := status.ListenStatus(ctx, o.Serving, command.MetricsHandler(registry)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return status.Run(ctx) })
	group.Go(func() error { return Serve(ctx, member, o, listener, registry) })
	return group.Wait()
}

// Serve serves the estimates of a member on the listener until ctx ends, and closes the listener.
// member is the client configuration of the member, and registerer registers the metrics. Another
// process may call Serve, which uses no other options than the cluster, the parallelism, the
// certificates and the feature gates.
func Serve(ctx context.Context, member *rest.Config, o *Options, listener net.Listener, registerer prometheus.Registerer) error {
	defer listener.Close()
	clients, err := estimator.NewClients(member)
	if err != nil {
		return err
	}
	server, err := estimator.New(estimator.Options{
		Cluster: o.Cluster, Clients: clients, Parallelism: o.Parallelism, Certificates: o.Certificates, Registerer: registerer,
		Quotas:  o.gates.Enabled(gates.ResourceQuotaEstimate),
		Assumed: o.gates.Enabled(gates.SchedulingOvercommitProtection),
	})
	if err != nil {
		return fmt.Errorf("starting the estimator of %s: %w", o.Cluster, err)
	}
	return server.Run(ctx, listener)
}
