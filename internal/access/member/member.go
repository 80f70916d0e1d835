// Package member provides credentials, a client, caches of the objects that Karmada manages in
// the member, and health probes.
//
// This package makes no decisions. A request to a member that does not respond ends with its
// timeout, and never blocks requests to other members. Caches hold only objects with the managed
// label, so their size depends on the number of delivered objects and not on the number of all
// objects.
package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/reconnect"
	"karmada.io/karmada/internal/access/watches"
)

// RequestTimeout is the maximum duration of one request to a member. It does not apply to
// watches.
const RequestTimeout = 32 * time.Second

// FieldManager is the field manager of the writes of Karmada to members.
const FieldManager = "karmada"

// Event is a change of a managed object in a member. Old is nil for an added object. New is nil for
// a deleted object.
type Event struct {
	Member   string
	Kind     schema.GroupVersionKind
	Old, New *unstructured.Unstructured
	// Initial is true if the object existed when the watch began.
	Initial bool
}

// Object returns the new state of the object, or its last state if it was deleted.
func (e Event) Object() *unstructured.Unstructured {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Member is the connection to one member cluster.
type Member struct {
	Name string

	config *rest.Config
	client atomic.Pointer[client.Client]
	mapper *watches.Mapper
	// managed contains the watches of managed objects.
	managed *managedWatches

	ctx    context.Context //nolint:containedctx // the inventory starts later and ends with the connection
	cancel context.CancelFunc

	// connections tracks the open connections to the member.
	connections *connrotation.ConnectionTracker
	// watchHTTP sends watches and the lists before them, and http sends all other requests. They share
	// their connections, because each connection costs memory and pings. discovery sends the discovery
	// requests.
	http, watchHTTP *http.Client
	discovery       *discovery.DiscoveryClient
	// verifier is nil for a member whose identity is not verified.
	verifier *identityVerifier
	apis     apiCache

	inventory    inventory
	health       *healthTracker
	probeTimeout time.Duration
	credentials  *credentials

	// bounds limits the data that the member sends.
	bounds *bounds.MemberBounds
}

// openMember creates the clients of a member. It works for a member that does not respond, because
// it sends no request.
func openMember(
	ctx context.Context, name string, config *rest.Config, verifier *identityVerifier,
	health *healthTracker, creds *credentials, managed *managedWatches,
) (*Member, error) {
	limits, hits := bounds.DefaultLimits(), bounds.NewHitTracker(name, time.Now)
	connections := trackConnections(config)
	verifier.wrapConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return bounds.NewTransport(trackFailures(next, health), limits, hits)
	})
	m := &Member{
		Name: name, config: config, managed: managed, health: health, credentials: creds,
		probeTimeout: probeTimeout, connections: connections, verifier: verifier,
		bounds: &bounds.MemberBounds{Limits: limits, Hits: hits, Now: time.Now},
	}
	if err := m.newClients(); err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", name, err)
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m, nil
}

// newClients creates the clients and the cache, without sending a request.
func (m *Member) newClients() (err error) {
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return fmt.Errorf("making HTTP client: %w", err)
	}
	m.watchHTTP = newWatchClient(m.http)
	if m.mapper, err = watches.NewMapper(m.config, m.http); err != nil {
		return err
	}
	if err := m.resetClient(); err != nil {
		return err
	}
	if m.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(m.config, m.http); err != nil {
		return fmt.Errorf("making discovery client: %w", err)
	}
	return nil
}

// watchServer returns the connection for the watches of managed objects.
func (m *Member) watchServer() (*watches.Server, error) {
	objects, err := dynamic.NewForConfigAndClient(m.config, m.watchHTTP)
	if err != nil {
		return nil, fmt.Errorf("making client for the watches of member %q: %w", m.Name, err)
	}
	server := watches.NewServer(objects, m.mapper, contextDiscovery{m.ctx, m}, m.bounds)
	server.ForgetKinds = m.forgetKinds
	return server, nil
}

// forgetKinds drops the cached resources of all kinds, because a kind may come back as another
// resource.
func (m *Member) forgetKinds() {
	if err := errors.Join(m.mapper.Reset(), m.resetClient()); err != nil {
		klog.FromContext(m.ctx).Error(err, "Resetting the resources of kinds", "member", m.Name)
	}
}

// resetClient replaces the client, because a client caches the resource of each kind forever, and
// the member may now serve a kind as another resource.
func (m *Member) resetClient() error {
	newClient, err := client.New(m.config, client.Options{HTTPClient: m.http, Scheme: runtime.NewScheme(), Mapper: m.mapper})
	if err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	newClient = newVerifyingClient(newClient, m.bounds.Hits, m.queryKind)
	m.client.Store(&newClient)
	return nil
}

// dialTimeout is the maximum time to establish a connection.
const dialTimeout = 10 * time.Second

// trackConnections makes a configuration track its connections, so that broken connections can be
// closed. If a network loses all packets, the connections report no error, and requests over such a
// connection are retried for minutes although a new connection would work.
func trackConnections(config *rest.Config) *connrotation.ConnectionTracker {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	connections := connrotation.NewConnectionTracker()
	config.Dial = connrotation.NewDialerWithTracker(dial, connections).DialContext
	return connections
}

// newWatchClient returns an HTTP client for watches, which uses the connections of another client. With
// it, a watch to a member that does not respond retries inside its request, and continues as soon as
// the member responds. Otherwise the watch would wait for a backoff of up to 30 seconds.
func newWatchClient(requests *http.Client) *http.Client {
	watchClient := *requests
	watchClient.Transport = reconnect.NewTransport(requests.Transport, reconnect.Options{WatchTimeout: -1})
	return &watchClient
}

// close ends all requests of the inventory, and closes all connections to the member.
func (m *Member) close() {
	m.cancel()
	m.inventory.watches.Wait()
	m.connections.CloseAll()
}

// Config returns the client configuration of the member.
func (m *Member) Config() *rest.Config { return rest.CopyConfig(m.config) }

// DynamicClient returns a client for objects of any kind, which reads and watches without a cache. It verifies
// no objects.
func (m *Member) DynamicClient() (dynamic.Interface, error) {
	objects, err := dynamic.NewForConfigAndClient(m.config, m.http)
	if err != nil {
		return nil, fmt.Errorf("making the dynamic client of member %q: %w", m.Name, err)
	}
	return objects, nil
}

// Client returns the client that reads and writes the objects of the member without a cache.
func (m *Member) Client() client.Client { return *m.client.Load() }

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// roundTripper is a function that wraps another http.RoundTripper. It gives access to the wrapped
// http.RoundTripper, so that idle connections can be closed.
type roundTripper struct {
	next      http.RoundTripper
	roundTrip func(*http.Request) (*http.Response, error)
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.roundTrip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }
