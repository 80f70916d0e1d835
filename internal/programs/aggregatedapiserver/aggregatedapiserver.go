// Package aggregatedapiserver answers "how does the server of the Cluster API run
// by itself?": the program karmada-aggregated-apiserver, with storage in any etcd,
// behind the aggregation layer of any kube-apiserver.
//
// It is told apart from what runs inside `karmada up` by its flags alone; replicas
// need no election, because all that they keep is in etcd.
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
	_ "k8s.io/component-base/metrics/prometheus/restclient" // requests to the control plane are measured
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/aggregated"
)

// Name of the program.
const Name = "karmada-aggregated-apiserver"

// Program is karmada-aggregated-apiserver. Its --feature-gates takes the gates of
// the API server library as well.
func Program() command.Program {
	return command.Program{
		Name:     Name,
		Help:     "serves the Cluster API and leads requests on to member clusters",
		New:      func(set *gates.Set) command.Options { return newOptions(set) },
		OwnGates: true,
	}
}

// options are what the program is told.
type options struct {
	server *aggregated.Options
	flags  *pflag.FlagSet
	// broken is why there is no server.
	broken error
}

func newOptions(set *gates.Set) *options {
	server, err := aggregated.NewOptions()
	if err != nil {
		return &options{broken: err}
	}
	server.Gates = set
	server.Server.SecureServing.BindAddress = net.ParseIP(flags.OwnAddress(net.IPv4zero.String()))
	return &options{server: server}
}

// AddFlags implements command.Options.
func (o *options) AddFlags(set *pflag.FlagSet) {
	if o.broken == nil {
		o.flags = set
		o.server.AddFlags(set)
	}
}

// Validate implements command.Options. It sets the gates that the flag names.
func (o *options) Validate() error {
	if o.broken != nil {
		return o.broken
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
	if err := o.connect(); err != nil {
		return err
	}
	server, err := aggregated.New(o.server)
	if err != nil {
		return err
	}
	watch, err := o.watchEpoch()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watch.Start(ctx) })
	group.Go(func() error { return server.Run(ctx) })
	return group.Wait()
}

// watchEpoch ends the program when the storage of the control plane was replaced: the
// server's own cache of it cannot begin anew otherwise.
func (o *options) watchEpoch() (*epoch.Watch, error) {
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

// connect says where the control plane is for everything that has no kubeconfig of
// its own. An API server protects itself, so that there is no limit unless a flag
// asks for one.
func (o *options) connect() error {
	connection := flags.Connection{}
	if core := o.server.Server.CoreAPI; core != nil {
		connection.Kubeconfig = core.CoreAPIKubeconfigPath
	}
	karmada, err := connection.Config(Name)
	if err != nil {
		return fmt.Errorf("reaching the API server that this one stands behind: %w", err)
	}
	o.server.Karmada = karmada
	if len(flags.Given(o.flags, "kube-api-qps", "kube-api-burst")) == 0 {
		o.server.KubeAPIQPS = -1
	}
	return nil
}
