package estimators

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// openTimeout is the default of Pool.openTimeout.
	openTimeout = 5 * time.Second
	// maxResponseBytes limits the response of an estimator, which is one number.
	maxResponseBytes = 64 << 10
	// maxDeadlineSkew is how much earlier than the client a server may notice a deadline.
	maxDeadlineSkew = 100 * time.Millisecond
	// maxErrorBytes limits the text of an error that an estimator returns.
	maxErrorBytes = 300
)

var (
	// errUnavailable is the error for an estimator that does not respond.
	errUnavailable = errors.New("unavailable")
	// errRefused is the error for a server that closes a new connection. Depending on the time of a
	// packet, gRPC receives the reason of the server or only a broken connection.
	errRefused = errors.New("the server closes new connections: check that both sides or none use TLS, and that the server accepts the client certificate")
)

// unavailableError is an error whose text does not contain the text of errUnavailable.
type unavailableError struct{ cause error }

func (u unavailableError) Error() string   { return u.cause.Error() }
func (u unavailableError) Unwrap() []error { return []error{errUnavailable, u.cause} }

// connection is a connection to the estimator of one cluster. gRPC opens its network connections
// again when they break.
type connection struct {
	address   string
	grpc      *grpc.ClientConn
	estimator estimatorpb.EstimatorClient
	lastDial  *dialResult
}

// dialResult holds the error of the last attempt of gRPC to open a network connection. gRPC itself
// reports this error only as a text.
type dialResult struct {
	mu  sync.Mutex
	err error
}

func (d *dialResult) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialResult) get() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// open opens a connection to the estimator of a cluster at the first of its addresses that responds.
func (p *Pool) open(ctx context.Context, cluster string) (*connection, error) {
	found, err := p.findAddresses(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var failure error
	for _, address := range found.candidates {
		c, err := p.openAddress(ctx, address, found.serverName, cluster)
		if err == nil {
			return c, nil
		}
		var lookup *net.DNSError
		if found.mayBeAbsent && errors.As(err, &lookup) && lookup.IsNotFound {
			continue
		}
		if failure == nil {
			failure = err
		}
	}
	if failure == nil {
		failure = errNoEstimator
	}
	return nil, failure
}

// openAddress opens a connection and waits until the estimator responds to a request for a Pod without
// requirements. An error response is sufficient: the next request receives it, too.
func (p *Pool) openAddress(ctx context.Context, address, serverName, cluster string) (*connection, error) {
	c, err := p.newConnection(address, serverName)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.openTimeout, fmt.Errorf("%w within %s", errNoResponse, p.openTimeout))
	defer cancel()
	_, err = c.estimator.MaxAvailableReplicas(ctx, &estimatorpb.MaxAvailableReplicasRequest{
		Cluster: cluster, ReplicaRequirements: &estimatorpb.ReplicaRequirements{},
	})
	if err == nil || !isUnavailable(err) {
		return c, nil
	}
	defer c.close()
	if ctx.Err() == nil && status.Code(err) == codes.Unavailable && c.lastDial.get() == nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, errRefused)
	}
	return nil, c.describe(ctx, err)
}

func (p *Pool) newConnection(address, serverName string) (*connection, error) {
	c := &connection{address: address, lastDial: &dialResult{}}
	transport := insecure.NewCredentials()
	if p.options.TLS.isEnabled() {
		transport = newTLSCredentials(p.options.TLS, serverName, c.lastDial)
	}
	made, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			raw, err := p.dialAddress(ctx, address)
			c.lastDial.set(err)
			return raw, err
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes)))
	if err != nil {
		return nil, fmt.Errorf("address %s of the estimator: %w", address, err)
	}
	c.grpc, c.estimator = made, estimatorpb.NewEstimatorClient(made)
	return c, nil
}

// close closes the connection. The connection may be nil or closed.
func (c *connection) close() {
	if c != nil {
		_ = c.grpc.Close() // returns an error only if the connection is already closed
	}
}

func (c *connection) isClosed() bool { return c.grpc.GetState() == connectivity.Shutdown }

var (
	// connectionEnds matches the addresses of both ends in the error of a network connection. They
	// are omitted, because the local port differs in each connection.
	connectionEnds = regexp.MustCompile(`(read|write) tcp \S+->\S+: `)
	// connectionError matches the frame that gRPC adds to the error of a network connection.
	connectionError = regexp.MustCompile(`^connection error: desc = "(.*)"$`)
)

// describe converts an error of gRPC to an error for users. Its text is the same for each
// connection with the same cause.
func (c *connection) describe(ctx context.Context, err error) error {
	reported, _ := status.FromError(err)
	if reported.Code() == codes.DeadlineExceeded {
		awaitDeadline(ctx)
	}
	message := connectionError.ReplaceAllString(connectionEnds.ReplaceAllString(reported.Message(), ""), "$1")
	message = conditions.Truncate(message, maxErrorBytes)
	switch {
	case ctx.Err() != nil && c.isConnected():
		return unavailableError{context.Cause(ctx)}
	case ctx.Err() != nil:
		return unavailableError{fmt.Errorf("connecting to %s: %w", c.address, context.Cause(ctx))}
	case reported.Code() == codes.DeadlineExceeded:
		return unavailableError{errNoResponse}
	case reported.Code() != codes.Unavailable:
		return errors.New(message)
	}
	if cause := c.lastDial.get(); cause != nil {
		return unavailableError{fmt.Errorf("connecting to %s: %w", c.address, shortDialError(cause))}
	}
	return unavailableError{fmt.Errorf("connection to %s: %s", c.address, message)}
}

// awaitDeadline waits for the deadline of a request that gRPC ended because of this deadline, because
// the server may notice the deadline earlier.
func awaitDeadline(ctx context.Context) {
	timer := time.NewTimer(maxDeadlineSkew)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// isConnected reports whether requests reached the server. After another request closed the
// connection, isConnected returns true.
func (c *connection) isConnected() bool {
	state := c.grpc.GetState()
	return state == connectivity.Ready || state == connectivity.Shutdown
}

// shortDialError returns the cause of an error of package net, which repeats the address.
func shortDialError(err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Err != nil {
		return operation.Err
	}
	return err
}
