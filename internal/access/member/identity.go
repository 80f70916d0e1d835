package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

const (
	// maxIdentityAttempts is the maximum number of identity checks for one request. More than one
	// check may be needed, because another request may use the proven connection first.
	maxIdentityAttempts = 3
	// maxIdentityBytes is the maximum size of the answer that identifies the cluster, in bytes.
	maxIdentityBytes = 1 << 20
)

// IdentityError reports that a member is another cluster than the one that its Cluster describes,
// or that the identity of the member is unknown. No request is sent to such a member.
type IdentityError struct {
	Identity domain.IdentityCheck
	message  string
}

// Error implements error.
func (i *IdentityError) Error() string { return i.message }

// identityVerifier proves for each connection to a member that it leads to the registered cluster.
// It does so before a request is sent over the connection, because an address may lead to another
// cluster with each new connection. A proven connection needs no further check, except one at each
// probe. The check at a probe detects a proxy that keeps its connections but changes the cluster
// behind them.
type identityVerifier struct {
	cluster, endpoint, expectedID string
	// namespaceURL is the URL of the namespace kube-system.
	namespaceURL *url.URL
	metrics      *Metrics
	// generation increases whenever all proofs become invalid.
	generation atomic.Int64
	// checkSlot allows only one request at a time to check the identity of the member.
	checkSlot chan struct{}
}

// newIdentityVerifier returns the verifier for a Cluster. It returns nil for a Cluster that was
// registered without an ID, or whose transport has no connections that can be proven.
func newIdentityVerifier(cluster *clusterv1alpha1.Cluster, config *rest.Config, metrics *Metrics) (*identityVerifier, error) {
	if cluster.Spec.ID == "" || config.Transport != nil {
		return nil, nil
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: spec.apiEndpoint: %w", cluster.Name, err)
	}
	return &identityVerifier{
		cluster: cluster.Name, endpoint: config.Host, expectedID: cluster.Spec.ID, metrics: metrics,
		namespaceURL: base.JoinPath("api", "v1", "namespaces", metav1.NamespaceSystem), checkSlot: make(chan struct{}, 1),
	}, nil
}

// wrapConfig makes the clients of a configuration prove their connections.
func (i *identityVerifier) wrapConfig(config *rest.Config) {
	if i == nil {
		return
	}
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &provableConn{Conn: opened}, nil
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
			if request.Context().Value(withoutProofKey{}) != nil {
				return next.RoundTrip(request)
			}
			return i.roundTrip(next, request)
		}}
	})
}

// withoutProofKey is the context key of requests that need no proven connection: health probes,
// and the identity check itself.
type withoutProofKey struct{}

func withoutIdentityProof(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutProofKey{}, true)
}

// provableConn is a connection that stores the generation in which it was proven.
type provableConn struct {
	net.Conn
	// provenGeneration is the generation of the proof plus one, or 0 for a connection that was
	// never proven.
	provenGeneration atomic.Int64
}

// provableAddr is the local address of a provableConn. It refers to the connection, because code
// that wraps a connection usually hides it, but returns its local address unchanged. client-go wraps
// connections in this way to close them when a client certificate is rotated, for certificates from
// files as well as for exec plugins.
type provableAddr struct {
	net.Addr
	conn *provableConn
}

// LocalAddr implements net.Conn.
func (p *provableConn) LocalAddr() net.Addr { return provableAddr{p.Conn.LocalAddr(), p} }

// provableConnOf returns the provableConn below a TLS connection and any other wrappers. It returns
// nil for a connection that this package did not dial.
func provableConnOf(conn net.Conn) *provableConn {
	if conn == nil {
		return nil
	}
	address, _ := conn.LocalAddr().(provableAddr)
	return address.conn
}

func (i *identityVerifier) isProven(conn net.Conn) bool {
	found := provableConnOf(conn)
	return found != nil && found.provenGeneration.Load() == i.generation.Load()+1
}

// roundTrip sends a request over a proven connection. If the server closes each connection after its
// first response, no request can use a proven connection. In that case, roundTrip sends the request
// over a new connection immediately after maxIdentityAttempts successful identity checks.
func (i *identityVerifier) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	for range maxIdentityAttempts {
		response, unproven, err := i.sendIfProven(next, request)
		if unproven == nil {
			return response, err
		}
		if err := i.proveConnection(request.Context(), unproven, next, request.Header); err != nil {
			return nil, err
		}
		var ok bool
		if request, ok = prepareResend(request); !ok {
			return nil, fmt.Errorf("cluster %s: the body of the request cannot be sent again after its connection was proven", i.cluster)
		}
	}
	return next.RoundTrip(request)
}

// sendIfProven sends a request if its connection is proven. Otherwise it returns the connection,
// and sends no byte of the request over it.
func (i *identityVerifier) sendIfProven(next http.RoundTripper, request *http.Request) (*http.Response, net.Conn, error) {
	ctx, cancel := context.WithCancel(request.Context())
	var unproven atomic.Pointer[net.Conn]
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if i.isProven(got.Conn) {
			return
		}
		unproven.Store(&got.Conn)
		// HTTP/2 checks the context before it writes. HTTP/1 does not check it, so the connection
		// is closed.
		if !isHTTP2(got.Conn) {
			_ = got.Conn.Close()
		}
		cancel()
	}}
	response, err := next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if found := unproven.Load(); found != nil {
		cancel()
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, *found, nil
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &cancelOnClose{ReadCloser: response.Body, cancel: cancel}
	}
	return response, nil, nil
}

// cancelOnClose is a response body that cancels the context of its request when it is closed.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelOnClose) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

func isHTTP2(conn net.Conn) bool {
	encrypted, ok := conn.(*tls.Conn)
	return ok && encrypted.ConnectionState().NegotiatedProtocol == "h2"
}

// proveConnection checks the identity of the member over a connection, unless another request has
// already proven the same connection.
func (i *identityVerifier) proveConnection(ctx context.Context, unproven net.Conn, next http.RoundTripper, header http.Header) error {
	select {
	case i.checkSlot <- struct{}{}:
		defer func() { <-i.checkSlot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if i.isProven(unproven) {
		return nil
	}
	return i.verify(ctx, next.RoundTrip, header)
}

// verify compares the UID of the namespace kube-system with the ID of the Cluster. If they are
// equal, it marks the connection of the answer as proven. If the member is another cluster, it
// makes the proofs of all connections invalid. A connection that cannot be marked is an error,
// because otherwise the member would be healthy although no request could be sent to it.
func (i *identityVerifier) verify(ctx context.Context, do func(*http.Request) (*http.Response, error), header http.Header) error {
	var usedConn net.Conn
	ctx = httptrace.WithClientTrace(withoutIdentityProof(ctx), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { usedConn = got.Conn }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.namespaceURL.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("cluster %s: reading its identity: %w", i.cluster, err)
	}
	for _, name := range []string{"Authorization", "User-Agent"} {
		if value := header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	generation := i.generation.Load()
	seen, err := readUID(do(request))
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return i.unknownError(err)
	case seen != i.expectedID:
		return i.mismatchError(seen)
	}
	found := provableConnOf(usedConn)
	if found == nil {
		return i.unknownError(errUnprovableConn)
	}
	found.provenGeneration.Store(generation + 1)
	i.metrics.countIdentityCheck(i.cluster, true)
	return nil
}

// errUnprovableConn reports a connection that was not opened by the dialer of the verifier.
var errUnprovableConn = errors.New("the request used a connection that Karmada did not open, which is an error of Karmada, so report it")

func (i *identityVerifier) unknownError(cause error) error {
	var refused *statusError
	message := fmt.Sprintf("cluster %s: the identity of the cluster at %s is unknown, so no request is sent to it: reading Namespace kube-system: ", i.cluster, i.endpoint)
	if errors.As(cause, &refused) {
		message += refused.Error() + "; let the account of Karmada in the member get that Namespace"
	} else {
		message += connectionCause(cause)
	}
	return &IdentityError{Identity: domain.IdentityCheck{UnknownCause: message}, message: message}
}

func (i *identityVerifier) mismatchError(seen string) error {
	i.generation.Add(1)
	i.metrics.countIdentityCheck(i.cluster, false)
	return &IdentityError{Identity: domain.IdentityCheck{OtherID: seen}, message: domain.MismatchMessage(i.cluster, i.endpoint, i.expectedID, seen)}
}

// statusError reports an answer with a status other than 200.
type statusError struct{ code int }

func (s *statusError) Error() string {
	return fmt.Sprintf("the answer is %d %s", s.code, http.StatusText(s.code))
}

var errNoUID = errors.New("the answer holds no valid UID")

func readUID(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, maxRejectionBody)
		return "", &statusError{response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxIdentityBytes))
	if err != nil {
		return "", err
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &found); err != nil || !domain.IsValidID(string(found.UID)) {
		return "", errNoUID
	}
	return string(found.UID), nil
}

// checkIdentity checks the identity of the member for a probe.
func (m *Member) checkIdentity(ctx context.Context) domain.IdentityCheck {
	if m.verifier == nil {
		return domain.IdentityCheck{}
	}
	err := m.verifier.verify(ctx, m.http.Do, nil)
	var identityErr *IdentityError
	switch {
	case err == nil:
		return domain.IdentityCheck{Proven: true}
	case errors.As(err, &identityErr):
		return identityErr.Identity
	default:
		return domain.IdentityCheck{UnknownCause: connectionCause(err)}
	}
}
