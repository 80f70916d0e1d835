// Package search serves search.karmada.io/v1alpha1 behind the aggregation layer of the Karmada API server: it
// stores ResourceRegistries in etcd, caches the objects that they select in members, and serves searches and the
// global proxy.
//
// Invariants:
//   - Search and proxy share one cache of member objects.
//   - A server can share a process with another API server, as package extensionserver describes.
//   - All goroutines of the server end before Run returns.
package search

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/extensionserver"
)

// Server is karmada-search, ready to run.
type Server struct {
	*extensionserver.Server

	components *components
	// lifetime ends after the last request.
	lifetime serverContext
	// streams ends when the server starts to stop, and ends long-running requests.
	streams serverContext
}

// serverContext is a context that only the server ends.
type serverContext struct {
	ctx context.Context //nolint:containedctx // components live as long as the server, not as long as the call of New
	end context.CancelFunc
}

func newServerContext(ctx context.Context) serverContext {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	return serverContext{ctx, end}
}

// sources are the data sources of a server.
type sources struct {
	options *Options
	// karmada is the client configuration for the Karmada API server, and karmadaClient a client.
	karmada       *clientrest.Config
	karmadaClient kubernetes.Interface
	// registries is the client configuration for the ResourceRegistries of this server.
	registries *clientrest.Config
}

// New returns a server with an open listener. The options must be valid, and may contain an open listener. The
// listener and the connections to etcd stay open until Run returns. ctx limits only the requests of New itself.
func New(ctx context.Context, o *Options) (*Server, error) { return newServer(ctx, o, assemble) }

func newServer(ctx context.Context, o *Options, assemble func(context.Context, sources) (*components, error)) (_ *Server, err error) {
	config, karmada, err := o.NewConfig(ctx, o.api())
	if err != nil {
		return nil, err
	}
	if err := o.applyRun(config); err != nil {
		return nil, err
	}
	server, err := extensionserver.NewServer(o.api(), config)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: server, lifetime: newServerContext(ctx), streams: newServerContext(ctx)}
	defer func() {
		if err != nil {
			s.release()
			s.Generic.Destroy()
		}
	}()
	from := sources{options: o, karmada: config.ClientConfig, karmadaClient: karmada, registries: s.Loopback()}
	s.components, err = assemble(s.lifetime.ctx, from) //nolint:contextcheck // the components live as long as the server
	if err != nil {
		return nil, err
	}
	if err := s.addReadyCheck(o); err != nil {
		return nil, err
	}
	return s, s.installAPI(o, config)
}

// release ends the components of the server.
func (s *Server) release() {
	s.streams.end()
	s.lifetime.end()
	if s.components != nil {
		s.components.release()
	}
}

// Run serves until ctx ends. Then it completes the current requests and releases all resources. It must be called
// only once.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.streams.end)
	defer stop()
	var running sync.WaitGroup
	for _, task := range s.components.tasks {
		running.Go(func() { task(s.lifetime.ctx) })
	}
	err := s.Server.Run(ctx)
	s.streams.end()
	s.lifetime.end()
	running.Wait()
	s.release()
	return err
}

// installAPI installs the API group.
func (s *Server) installAPI(o *Options, config *genericapiserver.RecommendedConfig) error {
	storage, err := newRegistryStorage(o.scheme, config.RESTOptionsGetter, s.components.rules)
	if err != nil {
		return fmt.Errorf("opening storage in etcd at %s, see --etcd-servers: %w",
			strings.Join(o.Server.Etcd.StorageConfig.Transport.ServerList, ","), err)
	}
	resources := map[string]rest.Storage{
		searchv1alpha1.ResourceRegistryResource:             storage.registry,
		searchv1alpha1.ResourceRegistryResource + "/status": storage.status,
	}
	if s.components.search != nil {
		resources[searchv1alpha1.SearchResource] = &searchStorage{handler: s.components.search, wrap: s.endWithServer}
	}
	if s.components.proxy != nil {
		resources[searchv1alpha1.ProxyingResource] = &proxyingStorage{handler: s.components.proxy, wrap: s.endWithServer}
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(searchv1alpha1.GroupName, o.scheme, runtime.NewParameterCodec(o.scheme), o.codecs)
	group.VersionedResourcesStorageMap[searchv1alpha1.GroupVersion.Version] = resources
	if err := s.Generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("serving %s: %w", searchv1alpha1.GroupName, err)
	}
	return nil
}

// endWithServer returns a handler whose requests end when the server starts to stop. Otherwise, a watch would delay
// the shutdown.
func (s *Server) endWithServer(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		stop := context.AfterFunc(s.streams.ctx, cancel) //nolint:contextcheck // both contexts end the request
		defer stop()
		handler.ServeHTTP(w, req.WithContext(ctx))
	})
}

// addReadyCheck adds a readyz check that fails until the caches are filled, or until the timeout.
func (s *Server) addReadyCheck(o *Options) error {
	if o.StorageInitializationTimeout == 0 {
		return nil
	}
	check := &cacheCheck{await: s.components.awaitCaches, timeout: o.StorageInitializationTimeout}
	s.components.tasks = append(s.components.tasks, check.run)
	if err := s.Generic.AddReadyzChecks(healthz.NamedCheck("member-caches", check.check)); err != nil {
		return fmt.Errorf("adding the readiness check of the caches: %w", err)
	}
	return nil
}
