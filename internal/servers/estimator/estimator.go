// Package estimator serves requests for a member's free capacity.
//
// The server watches the nodes, Pods and ReplicaSets of the member, and its ResourceQuotas if they limit
// estimates. It stores only a few fields of each object. The estimates themselves are computed by
// internal/domain/nodecapacity.
//
// Invariants:
//   - The server serves requests only after the first list of every watched kind is complete.
//   - The number of connections, the size of a request, the number of concurrent estimates and the
//     duration of a request are limited. A request that panics fails, and the server continues.
//   - With a certificate, connections use TLS 1.3 or newer. Changed certificate files are used for
//     new connections.
//   - Estimates do not block watches, except while the free amounts of all nodes are copied.
package estimator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
)

const (
	maxConnections       = 256
	maxConcurrentStreams = 256
	maxRequestBytes      = 4 << 20
	handshakeTimeout     = 10 * time.Second
	// minKeepalivePeriod is the shortest period in which clients may send keepalive pings.
	minKeepalivePeriod = 5 * time.Second
	keepalivePeriod    = 30 * time.Second
	keepaliveTimeout   = 10 * time.Second
	// requestTimeout limits a request whose client sets no earlier deadline.
	requestTimeout = 10 * time.Second
	// drainTimeout is how long requests in progress may take when the server stops.
	drainTimeout = 10 * time.Second
	// DefaultParallelism is the number of estimates at the same time, unless a user sets another.
	DefaultParallelism = 16
)

// Options configure a server.
type Options struct {
	// Cluster is the name of the member. The server rejects requests for other clusters.
	Cluster string
	// Clients access the API server of the member.
	Clients Clients
	// Quotas means that ResourceQuotas limit estimates.
	Quotas bool
	// Assumed means that the assumed workloads of a request count as used resources.
	Assumed bool
	// Parallelism is the number of estimates that are computed at the same time. 0 means
	// DefaultParallelism. Further requests wait.
	Parallelism int
	// Certificates are the files for TLS. The zero value disables TLS.
	Certificates Certificates
	// Registerer registers the metrics. nil means that the metrics are not registered.
	Registerer prometheus.Registerer
}

// Server serves the estimates of one member.
type Server struct {
	options Options
	cache   *cache
	service *service
	tls     *serverTLS
}

// New returns a server that does not serve yet. It reads the certificate files.
func New(o Options) (*Server, error) {
	if o.Parallelism == 0 {
		o.Parallelism = DefaultParallelism
	}
	if o.Cluster == "" || o.Parallelism < 0 {
		return nil, fmt.Errorf("cluster %q, parallelism %d: %w", o.Cluster, o.Parallelism, errInvalidOptions)
	}
	measurements, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, cache: newCache(o.Quotas)}
	s.service = &service{
		cluster: o.Cluster, cache: s.cache, selectors: o.Clients.selectors(), metrics: measurements, now: time.Now,
		quotas: o.Quotas, assumed: o.Assumed, slots: make(chan struct{}, o.Parallelism),
	}
	if o.Certificates.isEnabled() {
		if s.tls, err = newServerTLS(o.Certificates); err != nil {
			return nil, err
		}
	}
	return s, nil
}

var errInvalidOptions = errors.New("a server needs the name of its cluster, and a parallelism that is not negative")

// Run watches the member, and serves on the listener as soon as all kinds are listed. It closes the
// listener and returns when ctx ends or serving fails. A Server can run only once.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	defer listener.Close()
	group, ctx := errgroup.WithContext(ctx)
	for _, watch := range s.watches() {
		group.Go(func() error {
			watch(ctx)
			return nil
		})
	}
	group.Go(func() error {
		if !s.cache.await(ctx) {
			return nil
		}
		return s.serve(ctx, listener)
	})
	return group.Wait()
}

// serve serves until ctx ends.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	logger := klog.FromContext(ctx)
	server := grpc.NewServer(s.serverOptions(logger)...)
	estimatorpb.RegisterEstimatorServer(server, s.service)
	drained := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(drained)
		stop(server)
	})
	logger.Info("Serving estimates", "cluster", s.options.Cluster, "address", listener.Addr().String(), "tls", s.tls != nil)
	err := server.Serve(netutil.LimitListener(listener, maxConnections))
	if !release() {
		<-drained
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	}
	return nil
}

// stop ends a server. Requests in progress are completed within drainTimeout.
func stop(server *grpc.Server) {
	timeout := time.AfterFunc(drainTimeout, server.Stop)
	defer timeout.Stop()
	server.GracefulStop()
}

func (s *Server) serverOptions(logger klog.Logger) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxConcurrentStreams(maxConcurrentStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minKeepalivePeriod, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(recoverPanics, limitRequests(logger)),
	}
	if s.tls != nil {
		options = append(options, grpc.Creds(s.tls.credentials(logger)))
	}
	return options
}

var errPanicked = errors.New("the estimator panicked")

// recoverPanics converts the panic of a request to an error.
func recoverPanics(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanicked, r)
			klog.FromContext(ctx).Error(err, "Recovered from a panic", "method", info.FullMethod)
		}
	}()
	return handler(ctx, request)
}

// limitRequests returns an interceptor that limits the time of requests and adds the logger to
// their contexts.
func limitRequests(logger klog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), requestTimeout)
		defer cancel()
		return handler(ctx, request)
	}
}
