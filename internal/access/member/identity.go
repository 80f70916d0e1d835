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
	// identityTries is how often a request finds a connection that is not proven before
	// it is refused. A server may close a connection after each request.
	identityTries = 3
	// maxIdentity is how much is read of the answer that names the cluster.
	maxIdentity = 1 << 20
)

// IdentityError says that a member is not the cluster that its Cluster describes, or
// that it is not known which cluster the member is. No request is sent to it.
type IdentityError struct {
	Identity domain.Identity
	message  string
}

// Error implements error.
func (e *IdentityError) Error() string { return e.message }

// identity proves for each connection to a member, before a request is sent through
// it, that it leads to the cluster that was registered: an address may lead elsewhere
// from one connection to the next. A connection that is proven costs no request more,
// except one at each probe, which finds out about proxies that keep their connections.
type identity struct {
	cluster, endpoint, expected string
	// path is the URL of the namespace kube-system.
	path    *url.URL
	metrics *Metrics
	// epoch grows when all proofs are void.
	epoch atomic.Int64
	// turn lets one request at a time ask the member which cluster it is.
	turn chan struct{}
}

// newIdentity makes the proof for a Cluster, nil for one that was registered without
// an ID, or whose transport has no connections to prove.
func newIdentity(cluster *clusterv1alpha1.Cluster, config *rest.Config, metrics *Metrics) (*identity, error) {
	if cluster.Spec.ID == "" || config.Transport != nil {
		return nil, nil
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: spec.apiEndpoint: %w", cluster.Name, err)
	}
	return &identity{
		cluster: cluster.Name, endpoint: config.Host, expected: cluster.Spec.ID, metrics: metrics,
		path: base.JoinPath("api", "v1", "namespaces", metav1.NamespaceSystem), turn: make(chan struct{}, 1),
	}, nil
}

// around makes a configuration prove its connections.
func (i *identity) around(config *rest.Config) {
	if i == nil {
		return
	}
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &provable{Conn: opened}, nil
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next: next, trip: func(request *http.Request) (*http.Response, error) {
			if request.Context().Value(unproven{}) != nil {
				return next.RoundTrip(request)
			}
			return i.trip(next, request)
		}}
	})
}

// unproven marks the context of requests that need no proof: probes of health, and
// the one that proves.
type unproven struct{}

func withoutProof(ctx context.Context) context.Context {
	return context.WithValue(ctx, unproven{}, true)
}

// provable is a connection that remembers in which epoch it was proven.
type provable struct {
	net.Conn
	// proven is one more than the epoch, 0 for a connection that was never proven.
	proven atomic.Int64
}

// provableOf is the connection below TLS, nil for one that was not dialled here.
func provableOf(conn net.Conn) *provable {
	for conn != nil {
		if found, ok := conn.(*provable); ok {
			return found
		}
		below, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = below.NetConn()
	}
	return nil
}

func (i *identity) isProven(conn net.Conn) bool {
	found := provableOf(conn)
	return found != nil && found.proven.Load() == i.epoch.Load()+1
}

// trip sends a request through a connection that is proven.
func (i *identity) trip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	for range identityTries {
		response, stranger, err := i.send(next, request)
		if stranger == nil {
			return response, err
		}
		if err := i.await(request.Context(), stranger, next, request.Header); err != nil {
			return nil, err
		}
		var ok bool
		if request, ok = replay(request); !ok {
			return nil, fmt.Errorf("cluster %s: the body of the request cannot be sent again after its connection was proven", i.cluster)
		}
	}
	return nil, fmt.Errorf("cluster %s: each request to %s goes through another connection, and none could be proven", i.cluster, i.endpoint)
}

// send sends a request unless its connection is not proven, which it returns then. No
// byte of the request has been sent through that.
func (i *identity) send(next http.RoundTripper, request *http.Request) (*http.Response, net.Conn, error) {
	ctx, cancel := context.WithCancel(request.Context())
	var stranger atomic.Pointer[net.Conn]
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if i.isProven(got.Conn) {
			return
		}
		stranger.Store(&got.Conn)
		// HTTP/2 looks at the context before it begins to write. HTTP/1 does not, so it
		// must not be able to.
		if !speaksHTTP2(got.Conn) {
			_ = got.Conn.Close()
		}
		cancel()
	}}
	response, err := next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if found := stranger.Load(); found != nil {
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
		response.Body = &ending{ReadCloser: response.Body, end: cancel}
	}
	return response, nil, nil
}

// ending is a body with whose end the context of its request ends.
type ending struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

func speaksHTTP2(conn net.Conn) bool {
	encrypted, ok := conn.(*tls.Conn)
	return ok && encrypted.ConnectionState().NegotiatedProtocol == "h2"
}

// await asks the member which cluster it is, unless another request has done so
// through the same connection meanwhile.
func (i *identity) await(ctx context.Context, stranger net.Conn, next http.RoundTripper, header http.Header) error {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if i.isProven(stranger) {
		return nil
	}
	return i.ask(ctx, next.RoundTrip, header)
}

// ask compares the UID of the namespace kube-system with the ID of the Cluster, and
// notes that the connection through which it came leads to that cluster. A member that
// is another one voids the proofs of all connections.
func (i *identity) ask(ctx context.Context, do func(*http.Request) (*http.Response, error), header http.Header) error {
	var used net.Conn
	ctx = httptrace.WithClientTrace(withoutProof(ctx), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { used = got.Conn }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.path.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("cluster %s: asking for its identity: %w", i.cluster, err)
	}
	for _, name := range []string{"Authorization", "User-Agent"} {
		if value := header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	epoch := i.epoch.Load()
	seen, err := uidFrom(do(request))
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return i.unknown(err)
	case seen != i.expected:
		return i.mismatch(seen)
	}
	if found := provableOf(used); found != nil {
		found.proven.Store(epoch + 1)
	}
	i.metrics.identified(i.cluster, true)
	return nil
}

func (i *identity) unknown(cause error) error {
	var refused *statusError
	message := fmt.Sprintf("cluster %s: it is not known which cluster %s leads to, so nothing is sent there: reading Namespace kube-system: ", i.cluster, i.endpoint)
	if errors.As(cause, &refused) {
		message += refused.Error() + "; let the account of Karmada in the member get that Namespace"
	} else {
		message += causeOf(cause)
	}
	return &IdentityError{Identity: domain.Identity{Unknown: message}, message: message}
}

func (i *identity) mismatch(seen string) error {
	i.epoch.Add(1)
	i.metrics.identified(i.cluster, false)
	return &IdentityError{Identity: domain.Identity{Seen: seen}, message: domain.Mismatch(i.cluster, i.endpoint, i.expected, seen)}
}

// statusError is an answer other than 200.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the answer is %d %s", e.code, http.StatusText(e.code))
}

var errNoUID = errors.New("the answer holds no valid UID")

func uidFrom(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, maxRefusal)
		return "", &statusError{response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxIdentity))
	if err != nil {
		return "", err
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &found); err != nil || !domain.IsID(string(found.UID)) {
		return "", errNoUID
	}
	return string(found.UID), nil
}

// identify proves the connection that probes go through.
func (m *Member) identify(ctx context.Context) domain.Identity {
	if m.identity == nil {
		return domain.Identity{}
	}
	err := m.identity.ask(ctx, m.http.Do, nil)
	var of *IdentityError
	switch {
	case err == nil:
		return domain.Identity{Proven: true}
	case errors.As(err, &of):
		return of.Identity
	default:
		return domain.Identity{Unknown: causeOf(err)}
	}
}
