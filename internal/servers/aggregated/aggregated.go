// Package aggregated answers: who serves cluster.karmada.io/v1alpha1? It is the
// API server for Clusters behind the aggregation layer of the Karmada API server,
// with storage of its own in etcd and the proxy to member clusters.
//
// Invariants:
//   - A server is a value: it touches no flags, signals, logger or registry of the
//     process, so that it can live beside another API server, and everything it
//     started ends with the context of Run. The one thing it shares is the feature
//     gate of the API server library, which it changes only for gates that the
//     flag --feature-gates names.
//   - Whoever it lets in was let in by the Karmada API server's own rules: it
//     delegates authentication and authorization.
package aggregated

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientrest "k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
	"karmada.io/karmada/internal/servers/aggregated/registry"
)

const (
	// watchDrain is how long the server takes to end watches when it stops.
	watchDrain = 2 * time.Second
	// stopTimeout bounds the wait for streams to members when it stops.
	stopTimeout = 10 * time.Second
	readyPoll   = 20 * time.Millisecond
	// sweepPeriod is how soon connections end to a cluster that another replica of
	// the server has deleted.
	sweepPeriod = 30 * time.Second
)

// Server is an aggregated API server that is ready to run.
type Server struct {
	generic *genericapiserver.GenericAPIServer
	address net.Addr
	ready   chan struct{}
}

// New assembles a server and opens its listener, unless the options bring one.
// The options must be valid. A server that is never run holds on to its listener
// and its connections to etcd.
func New(o *Options) (*Server, error) {
	if err := o.ApplyFeatureGates(); err != nil {
		return nil, err
	}
	config, from, err := o.config()
	if err != nil {
		return nil, err
	}
	// The address is settled: without it the library ends the process when the
	// configuration is completed.
	config.ExternalAddress = config.SecureServing.Listener.Addr().String()
	config.ShutdownWatchTerminationGracePeriod = watchDrain
	generic, err := config.Complete().New("karmada-aggregated-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("assembling the API server: %w", err)
	}
	generic.ShutdownTimeout = stopTimeout
	s := &Server{generic: generic, address: config.SecureServing.Listener.Addr(), ready: make(chan struct{})}
	if err := s.install(o, config, from); err != nil {
		generic.Destroy()
		return nil, err
	}
	return s, nil
}

// install serves the API group.
func (s *Server) install(o *Options, config *genericapiserver.RecommendedConfig, from proxy.Sources) error {
	storage, err := registry.New(o.scheme, config.RESTOptionsGetter, registry.Rules{
		ResourceModels: o.resourceModels,
		Now:            metav1.Now,
		Authorizer:     config.Authorization.Authorizer,
	})
	if err != nil {
		return fmt.Errorf("using etcd at %s, see --etcd-servers: %w", strings.Join(o.Server.Etcd.StorageConfig.Transport.ServerList, ","), err)
	}
	from.Cluster, from.Clusters = registry.Getter(storage.Cluster.Store), registry.Lister(storage.Cluster.Store)
	from.Budgets = o.Budgets
	members, err := proxy.New(from)
	if err != nil {
		return err
	}
	storage.Cluster.AfterDelete = func(obj runtime.Object, _ *metav1.DeleteOptions) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
			members.Forget(cluster.Name)
		}
	}
	err = s.generic.AddPostStartHook("sweep-connections", func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook, members.Sweep, sweepPeriod)
		return nil
	})
	if err != nil {
		return fmt.Errorf("ending connections to clusters that have left: %w", err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(clusterv1alpha1.GroupName, o.scheme, runtime.NewParameterCodec(o.scheme), o.codecs)
	group.VersionedResourcesStorageMap[clusterv1alpha1.GroupVersion.Version] = map[string]rest.Storage{
		"clusters":        storage.Cluster,
		"clusters/status": storage.Status,
		"clusters/proxy":  members,
	}
	if err := s.generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("serving %s: %w", clusterv1alpha1.GroupName, err)
	}
	return nil
}

// Address is where the server listens.
func (s *Server) Address() net.Addr { return s.address }

// Loopback is a configuration for clients inside the process, which may do
// everything. It works while Run does.
func (s *Server) Loopback() *clientrest.Config {
	return clientrest.CopyConfig(s.generic.LoopbackClientConfig)
}

// Ready is closed once /readyz answers with success for the first time: storage
// is initialised and requests can be served.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run serves until the context ends, then drains requests and frees what the
// server holds. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	probing, stop := context.WithCancel(ctx)
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		s.awaitReady(probing)
	}()
	err := s.generic.PrepareRun().RunWithContext(ctx)
	stop()
	<-probed
	if err != nil {
		return fmt.Errorf("serving %s: %w", clusterv1alpha1.GroupName, err)
	}
	return nil
}

// awaitReady closes ready when the server says of itself that it is.
func (s *Server) awaitReady(ctx context.Context) {
	client, err := clientrest.HTTPClientFor(s.Loopback())
	if err != nil {
		return
	}
	defer client.CloseIdleConnections()
	probe := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.generic.LoopbackClientConfig.Host+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			// Not listening yet; the context bounds the wait.
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	}
	if wait.PollUntilContextCancel(ctx, readyPoll, true, probe) == nil {
		close(s.ready)
	}
}
