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
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers the metrics of requests to the control plane
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/aggregated"
)

// New returns the component. The option --feature-gates of its program accepts the gates of
// Karmada and the gates of the API server library.
func New(*gates.Set) programs.Component {
	inProcess := &InProcess{}
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
	if err := o.configureClients(); err != nil {
		return err
	}
	server, err := aggregated.New(ctx, o.server)
	if err != nil {
		return err
	}
	watch, err := o.newEpochWatch()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watch.Start(ctx) })
	group.Go(func() error { return server.Run(ctx) })
	return group.Wait()
}

// newEpochWatch returns a watch that ends the program when the storage of the control plane is
// replaced. Then the program must restart, because the storage cache of the server cannot be
// reset.
func (o *options) newEpochWatch() (*epoch.Watcher, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	reader, err := client.New(o.server.Karmada, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return epoch.New(epoch.Options{Reader: reader}), nil
}

// configureClients sets the client configuration for the control plane. The rate of requests is
// limited only if a flag sets a limit, because the API server protects itself.
func (o *options) configureClients() error {
	connection := flags.Connection{}
	if core := o.server.Server.CoreAPI; core != nil {
		connection.Kubeconfig = core.CoreAPIKubeconfigPath
	}
	karmada, err := connection.Config(programs.AggregatedAPIServer)
	if err != nil {
		return fmt.Errorf("loading the client configuration of the kube-apiserver: %w", err)
	}
	o.server.Karmada = karmada
	if len(flags.GivenFlags(o.flags, "kube-api-qps", "kube-api-burst")) == 0 {
		o.server.KubeAPIQPS = -1
	}
	return nil
}
