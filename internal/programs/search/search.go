// Package search answers "how does karmada-search run?": it caches objects of all member clusters,
// finds them, and serves them as one cluster through the global proxy.
//
// The program runs the same server as `karmada up`, but flags configure it. Replicas need no
// leader election: each of them has its own cache.
package search

import (
	"context"
	"errors"
	"net"
	"time"

	"karmada.io/karmada/internal/programs/extension"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers the metrics of requests to the control plane
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/search"
)

// New returns the component. The option --feature-gates of its program accepts the gates of
// Karmada and the gates of the API server library.
func New(*gates.Set) programs.Component {
	inProcess := &InProcess{Settings: search.DefaultSettings()}
	return programs.Component{
		Name: programs.Search, Help: "searches the objects of all member clusters and serves them as one cluster",
		Options:    inProcess,
		Server:     &programs.Server{New: inProcess.newServer, APIServices: []string{search.APIServiceName}, IsOptional: true},
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return newOptions(set) }, OwnGates: true,
	}
}

// options are the parsed flags of the program.
type options struct {
	server *search.Options
	flags  *pflag.FlagSet
	// initErr is the error of search.NewOptions.
	initErr error
}

func newOptions(set *gates.Set) *options {
	server, err := search.NewOptions()
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
	return o.server.Complete()
}

// gcPercent is the default of GOGC. The cached objects are most of the heap. The default of Go, 100,
// would double it: 100 000 Pods of 3 KiB need 331 MiB with it while the index is built, and 240 MiB with
// 40.
const gcPercent = 40

// Run implements command.Options.
func (o *options) Run(ctx context.Context) error {
	ctrllog.SetLogger(klog.Background())
	command.LowerGCTarget(gcPercent)
	if err := command.RegisterBuildInfo(legacyregistry.Registerer()); err != nil {
		return err
	}
	if err := o.configureClients(); err != nil {
		return err
	}
	o.server.Registerer = legacyregistry.Registerer()
	var err error
	if o.server.Lock, err = newLock(o.server.Karmada); err != nil {
		return err
	}
	server, err := search.New(ctx, o.server)
	if err != nil {
		return err
	}
	return extension.Run(ctx, o.server.Karmada, server.Run)
}

// newLock returns the Lease of the replicas. Each replica serves requests, but only one writes statuses
// and to OpenSearch.
func newLock(karmada *rest.Config) (resourcelock.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(karmada), "leader-election")
	// A request that hangs must not make the replica lose the Lease.
	config.Timeout = lockTimeout
	return programs.NewLease(config, flags.DefaultElection(programs.Search))
}

const lockTimeout = 5 * time.Second

// configureClients sets the client configurations. The rate of requests is limited only if a flag sets a
// limit.
func (o *options) configureClients() error {
	if err := extension.Connect(&o.server.Options, o.flags, programs.Search); err != nil {
		return err
	}
	o.server.Settings = withOptionalThrottle(o.server.Settings, o.flags)
	return nil
}

// withOptionalThrottle returns settings that limit the requests to members only if a flag sets a
// limit.
func withOptionalThrottle(settings search.Settings, set *pflag.FlagSet) search.Settings {
	if set == nil || len(flags.GivenFlags(set, "cluster-api-qps", "cluster-api-burst")) == 0 {
		settings.MemberThrottle = search.NoThrottle()
	}
	return settings
}
