package estimators

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// PoolOptions configure a Pool.
type PoolOptions struct {
	// Services reads the Services of the Karmada API server. It reads a cache, because it is called
	// at each attempt to open a connection.
	Services client.Reader
	// Namespace is the namespace of the Services of estimators. The Service of a cluster has the
	// name PREFIX-CLUSTER. Port is the port of these Services.
	Namespace, Prefix string
	Port              int
	// SkipPullMode excludes clusters in pull mode from Estimate.
	SkipPullMode bool
	TLS          ClientTLS
	// Timeout limits the time of UnschedulableReplicas for all clusters together. It must be
	// positive.
	Timeout time.Duration
	// Metrics may be nil.
	Metrics *PoolMetrics
}

// maxRequests limits the concurrent requests of a pool to all estimators together. A request
// consumes some KiB of memory.
const maxRequests = 1024

// Pool requests estimates from the accurate estimators of clusters. It implements
// Estimator.
type Pool struct {
	options PoolOptions
	// dialAddress opens a network connection to HOST:PORT.
	dialAddress func(ctx context.Context, address string) (net.Conn, error)
	// openTimeout is how long one address may take until it responds.
	openTimeout time.Duration
	now         func() time.Time
	slots       chan struct{}
	// ctx ends when the pool is closed. It limits attempts to open a connection, because they
	// continue after the request that started them.
	ctx    context.Context //nolint:containedctx // the attempts of a pool end with the pool
	cancel context.CancelFunc
	// openings counts the running attempts.
	openings sync.WaitGroup

	mu       sync.Mutex
	clusters map[string]*estimator
	isClosed bool
}

var _ Estimator = (*Pool)(nil)

// NewPool returns a pool without connections. It returns an error if the TLS files cannot be used. The
// caller calls Close or Start.
func NewPool(o PoolOptions) (*Pool, error) {
	if _, err := o.TLS.load(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	dialer := &net.Dialer{}
	return &Pool{
		options: o, openTimeout: openTimeout, now: time.Now, slots: make(chan struct{}, maxRequests), ctx: ctx, cancel: cancel,
		clusters: map[string]*estimator{},
		dialAddress: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
	}, nil
}

// Close closes all connections and ends all attempts to open one. Later requests have no response.
func (p *Pool) Close() {
	p.cancel()
	p.mu.Lock()
	known := p.clusters
	p.clusters, p.isClosed = map[string]*estimator{}, true
	p.mu.Unlock()
	for _, e := range known {
		e.reset()
	}
	p.openings.Wait()
}

// Estimate implements Estimator. The caller sets the deadline of ctx.
func (p *Pool) Estimate(ctx context.Context, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster, report Report) {
	send, err := newEstimate(demand)
	ctx = withObject(ctx, demand.Workload)
	p.forEach(ctx, len(clusters), func(i int) {
		cluster := clusters[i]
		switch {
		case err != nil:
			report(i, capacity.Estimate{Err: err})
		case p.options.SkipPullMode && cluster.Spec.SyncMode == clusterv1alpha1.Pull:
			report(i, capacity.Estimate{Count: capacity.Unknown})
		default:
			report(i, p.estimate(ctx, send, cluster.Name, demand.Assumed[cluster.Name]))
		}
	})
}

// errNoResponse is the error for clusters that were not asked before the deadline.
var errNoResponse = errors.New("no response")

// UnschedulableReplicas returns how many Pods of the workload have been unschedulable for at least
// the threshold. It returns one estimate for each cluster, in the order of the clusters. An
// estimate is capacity.Unknown if the cluster has no estimator.
func (p *Pool) UnschedulableReplicas(ctx context.Context, workload workv1alpha2.ObjectReference, threshold time.Duration,
	clusters []string) []capacity.Estimate {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Timeout, fmt.Errorf("%w within %s", errNoResponse, p.options.Timeout))
	defer cancel()
	ctx = withObject(ctx, workload)
	estimates := make([]capacity.Estimate, len(clusters))
	asked := p.forEach(ctx, len(clusters), func(i int) {
		estimates[i] = p.request(ctx, clusters[i], func(ctx context.Context, estimator estimatorpb.EstimatorClient) (int32, error) {
			response, err := estimator.GetUnschedulableReplicas(ctx, EncodeUnschedulable(clusters[i], workload, threshold))
			return response.GetUnschedulableReplicas(), err
		})
	})
	for i := asked; i < len(clusters); i++ {
		estimates[i].Err = context.Cause(ctx)
	}
	return estimates
}

// forEach calls visit concurrently for 0 to count-1 and waits until all calls return. It starts no
// call after ctx ends, and returns the number of calls.
func (p *Pool) forEach(ctx context.Context, count int, visit func(i int)) (visited int) {
	var running sync.WaitGroup
	defer running.Wait()
	for i := range count {
		if ctx.Err() != nil {
			return i
		}
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return i
		}
		running.Go(func() {
			defer func() { <-p.slots }()
			visit(i)
		})
	}
	return count
}

// objectKey is the gRPC metadata key that tells an estimator for which object the request is.
const objectKey = "object"

func withObject(ctx context.Context, workload workv1alpha2.ObjectReference) context.Context {
	name := types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name}
	return metadata.AppendToOutgoingContext(ctx, objectKey, fmt.Sprintf("kind=%s, name=%s", workload.Kind, name))
}

// requestFunc sends one request to an estimator.
type requestFunc func(ctx context.Context, estimator estimatorpb.EstimatorClient) (int32, error)

// maxTries limits how often one request is sent. It is sent again if its connection was closed
// because the address of the estimator changed.
const maxTries = 2

// request sends a request to the estimator of a cluster.
func (p *Pool) request(ctx context.Context, cluster string, send requestFunc) capacity.Estimate {
	e := p.estimatorOf(cluster)
	if e == nil {
		return capacity.Estimate{Err: errClosed}
	}
	for range maxTries {
		c, unavailable := e.connect(ctx)
		if c == nil {
			return unavailable
		}
		count, err := send(ctx, c.estimator)
		switch {
		case err == nil && count < capacity.Unknown:
			err = fmt.Errorf("estimator of cluster %s returned %d: the smallest valid count is %d", cluster, count, capacity.Unknown)
			e.recordAnswer(err)
			return capacity.Estimate{Err: err}
		case err == nil:
			e.recordAnswer(nil)
			return capacity.Estimate{Count: count}
		case ctx.Err() == nil && c.isClosed():
			continue // the connection was replaced
		}
		err = c.describe(ctx, err)
		e.recordFailure(ctx, c, err)
		return capacity.Estimate{Err: err}
	}
	return capacity.Estimate{Err: errReplaced}
}

var (
	errClosed   = errors.New("the pool of estimators is closed")
	errReplaced = errors.New("the address of the estimator changes")
)

// estimatorOf returns the estimator of a cluster, or nil if the pool is closed.
func (p *Pool) estimatorOf(cluster string) *estimator {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return nil
	}
	e := p.clusters[cluster]
	if e == nil {
		e = &estimator{pool: p, cluster: cluster}
		p.clusters[cluster] = e
	}
	return e
}
