// Package aggregated answers: how is cluster.karmada.io/v1alpha1 served? It is the API server of
// Clusters behind the aggregation layer of the Karmada API server. It has its own storage in etcd,
// and contains the proxy to member clusters.
//
// Invariants:
//   - A server uses no global flags, signals, logger or metrics registry, so that
//     it can share a process with another API server. Everything that it starts ends
//     with the context of Run. The only shared state is the feature gate of the API
//     server library, which changes only for gates named in --feature-gates.
//   - Authentication and authorization are delegated to the Karmada API server.
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
	// watchDrainPeriod is the period over which the server ends watches when it stops.
	watchDrainPeriod = 2 * time.Second
	// shutdownTimeout limits the wait for the end of streams to members when the server stops.
	shutdownTimeout = 10 * time.Second
	readyPoll       = 20 * time.Millisecond
	// sweepPeriod is the interval at which the server closes connections to clusters that another
	// replica of the server has deleted.
	sweepPeriod = 30 * time.Second
)

// Server is an aggregated API server that is ready to run.
type Server struct {
	generic *genericapiserver.GenericAPIServer
	address net.Addr
	ready   chan struct{}
}

// New returns a server with an open listener. The options must be valid and may contain an open
// listener. The listener and the connections to etcd stay open until Run ends. ctx ends only the
// requests that New itself sends.
func New(ctx context.Context, o *Options) (*Server, error) {
	if err := o.ApplyFeatureGates(); err != nil {
		return nil, err
	}
	config, sources, err := o.config(ctx)
	if err != nil {
		return nil, err
	}
	// If there is no external address, the library exits the process when the configuration is
	// completed.
	config.ExternalAddress = config.SecureServing.Listener.Addr().String()
	config.ShutdownWatchTerminationGracePeriod = watchDrainPeriod
	generic, err := config.Complete().New("karmada-aggregated-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("creating the API server: %w", err)
	}
	generic.ShutdownTimeout = shutdownTimeout
	s := &Server{generic: generic, address: config.SecureServing.Listener.Addr(), ready: make(chan struct{})}
	if err := s.installAPI(o, config, sources); err != nil {
		generic.Destroy()
		return nil, err
	}
	return s, nil
}

// installAPI installs the API group.
func (s *Server) installAPI(o *Options, config *genericapiserver.RecommendedConfig, sources proxy.Sources) error {
	storage, err := registry.New(o.scheme, config.RESTOptionsGetter, registry.Rules{
		ResourceModels: o.resourceModelsEnabled,
		Now:            metav1.Now,
		Authorizer:     config.Authorization.Authorizer,
	})
	if err != nil {
		return fmt.Errorf("opening storage in etcd at %s, see --etcd-servers: %w", strings.Join(o.Server.Etcd.StorageConfig.Transport.ServerList, ","), err)
	}
	sources.Cluster, sources.Clusters = registry.NewClusterGetter(storage.Cluster.Store), registry.NewClusterLister(storage.Cluster.Store)
	sources.Budgets = o.Budgets
	members, err := proxy.New(sources)
	if err != nil {
		return err
	}
	storage.Cluster.AfterDelete = func(obj runtime.Object, _ *metav1.DeleteOptions) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
			members.RemoveMember(cluster.Name)
		}
	}
	err = s.generic.AddPostStartHook("sweep-connections", func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook.Context, members.RemoveDeletedMembers, sweepPeriod)
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the hook that closes connections to deleted clusters: %w", err)
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

// Address returns the address of the listener.
func (s *Server) Address() net.Addr { return s.address }

// Loopback returns a client configuration with all rights for clients in this process. It works
// while Run is active.
func (s *Server) Loopback() *clientrest.Config {
	return clientrest.CopyConfig(s.generic.LoopbackClientConfig)
}

// Ready returns a channel that is closed when /readyz succeeds for the first time. Then the
// storage is initialized and requests can be served.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run serves until the context ends. Then it completes requests in progress and releases all
// resources. A server can run only once.
func (s *Server) Run(ctx context.Context) error {
	probeCtx, stop := context.WithCancel(ctx)
	probeEnded := make(chan struct{})
	go func() {
		defer close(probeEnded)
		s.awaitReady(probeCtx)
	}()
	err := s.generic.PrepareRun().RunWithContext(ctx)
	stop()
	<-probeEnded
	if err != nil {
		return fmt.Errorf("serving %s: %w", clusterv1alpha1.GroupName, err)
	}
	return nil
}

// awaitReady closes ready when /readyz succeeds.
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
			// The server does not listen yet. Retry until the context ends.
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	}
	if wait.PollUntilContextCancel(ctx, readyPoll, true, probe) == nil {
		close(s.ready)
	}
}
