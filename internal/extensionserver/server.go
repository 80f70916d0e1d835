// Package extensionserver starts API servers behind the aggregation layer of the Karmada API
// server, and verifies the callers that they trust.
//
// Invariants:
//   - A server uses no global flags, signals, logger or metrics registry, so that
//     it can share a process with another API server. Everything that it starts ends
//     with the context of Run.
//   - Authentication and authorization are delegated to the Karmada API server.
package extensionserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientrest "k8s.io/client-go/rest"
)

const (
	// watchDrainPeriod is the period over which a server ends watches when it stops.
	watchDrainPeriod = 2 * time.Second
	// shutdownTimeout limits the wait for the end of streams when a server stops.
	shutdownTimeout = 10 * time.Second
	readyPoll       = 20 * time.Millisecond
)

// Server is an API server with an open listener.
type Server struct {
	// Generic is the server of the API server library.
	Generic *genericapiserver.GenericAPIServer

	group   string
	address net.Addr
	ready   chan struct{}
}

// NewServer returns a server without APIs. The listener and the connections to etcd stay open until
// Run ends, or until Generic.Destroy is called.
func NewServer(api API, config *genericapiserver.RecommendedConfig) (*Server, error) {
	// If there is no external address, the library exits the process when the configuration is
	// completed.
	if config.ExternalAddress == "" {
		config.ExternalAddress = config.SecureServing.Listener.Addr().String()
	}
	if config.ShutdownWatchTerminationGracePeriod == 0 {
		config.ShutdownWatchTerminationGracePeriod = watchDrainPeriod
	}
	generic, err := config.Complete().New(api.Name, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("creating the API server: %w", err)
	}
	generic.ShutdownTimeout = shutdownTimeout
	return &Server{Generic: generic, group: api.Group, address: config.SecureServing.Listener.Addr(), ready: make(chan struct{})}, nil
}

// Address returns the address of the listener.
func (s *Server) Address() net.Addr { return s.address }

// Loopback returns a client configuration with all permissions for clients in this process. It works
// while Run is active.
func (s *Server) Loopback() *clientrest.Config {
	return clientrest.CopyConfig(s.Generic.LoopbackClientConfig)
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
	err := s.Generic.PrepareRun().RunWithContext(ctx)
	stop()
	<-probeEnded
	if err != nil {
		return fmt.Errorf("serving %s: %w", s.group, err)
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
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Generic.LoopbackClientConfig.Host+"/readyz", nil)
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
