package scheduling

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

// NewEstimator returns the component karmada-scheduler-estimator. It always runs as a separate program,
// because it belongs to one member and not to the control plane: it reads the API server of the member,
// and never the control plane. Replicas need no leader election, because they write nothing.
func NewEstimator(_ *gates.Set) programs.Component {
	return programs.Component{
		Name: programs.SchedulerEstimator, Help: "reports to the scheduler how many replicas fit into one member cluster",
		Metrics:    programs.CollectedMetrics(estimator.Metrics),
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return NewEstimatorOptions(set) },
	}
}

// Run serves until ctx ends. It implements command.Options.
func (o *EstimatorOptions) Run(ctx context.Context) error {
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
func (o *EstimatorOptions) serve(ctx context.Context, member *rest.Config, listener net.Listener, registry *prometheus.Registry) error {
	defer listener.Close()
	status := command.ServerGroup{}
	if err := status.ListenStatus(ctx, o.Serving, command.MetricsHandler(registry)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return status.Run(ctx) })
	group.Go(func() error { return ServeEstimator(ctx, member, o, listener, registry) })
	return group.Wait()
}

// ServeEstimator serves the estimates of a member on the listener until ctx ends, and closes the listener.
// member is the client configuration of the member, and registerer registers the metrics. Another
// process may call ServeEstimator, which uses no other options than the cluster, the parallelism, the
// certificates and the feature gates.
func ServeEstimator(ctx context.Context, member *rest.Config, o *EstimatorOptions, listener net.Listener,
	registerer prometheus.Registerer) error {
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
