// Package member answers "how is one member cluster reached, and what do we know
// of it without asking?": credentials, a client, caches of the objects that
// Karmada manages there, and health probes.
//
// Nothing here decides anything. A member that hangs costs a request its time
// limit and never blocks another member. Caches hold only objects with the
// managed label, so their size follows what was delivered and not what exists.
package member

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/reconnect"
)

// RequestTimeout is how long one request to a member may take. Watches are
// exempt.
const RequestTimeout = 32 * time.Second

// FieldManager is the name under which members record what we write.
const FieldManager = "karmada"

// Event is a change of a managed object in a member. Old is nil for an object
// that appeared, New for one that is gone.
type Event struct {
	Member   string
	Kind     schema.GroupVersionKind
	Old, New *unstructured.Unstructured
	// Initial tells that the object was there when the watch began.
	Initial bool
}

// Object is the state the event tells of: the new one, or the last one of an
// object that is gone.
func (e Event) Object() *unstructured.Unstructured {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Member is the way into one member cluster.
type Member struct {
	Name string

	config *rest.Config
	client atomic.Pointer[client.Client]
	mapper *mapper
	cache  cache.Cache
	notify func(Event)
	// returned is called when the member serves a kind again whose watch had ended.
	returned func(kind schema.GroupVersionKind)

	ctx    context.Context //nolint:containedctx // watches that start later live as long as the member
	cancel context.CancelFunc
	ended  chan struct{}

	// connections are all that are open to the member.
	connections *connrotation.ConnectionTracker
	// http sends requests, discovery those about the server itself.
	http      *http.Client
	discovery *discovery.DiscoveryClient
	// identity is nil for a member that need not prove which cluster it is.
	identity *identity
	apis     apis

	inventory  inventory
	liveness   *liveness
	probeLimit time.Duration
	shown      *credentials

	kinds kinds

	// bounds limits what the member sends.
	bounds *bounds.MemberBounds
}

// open connects to a member. Nothing is asked of it yet, so that a member that
// does not answer can be opened too.
func open(ctx context.Context, name string, config *rest.Config, proof *identity, alive *liveness, shown *credentials, notify func(Event)) (*Member, error) {
	limits, ledger := bounds.DefaultLimits(), bounds.NewHitTracker(name, time.Now)
	connections := tracked(config)
	proof.around(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return bounds.NewTransport(listening(next, alive), limits, ledger)
	})
	m := &Member{
		Name: name, config: config, notify: notify, returned: func(schema.GroupVersionKind) {}, liveness: alive, shown: shown,
		probeLimit: probeTimeout, connections: connections, identity: proof, ended: make(chan struct{}), kinds: newKinds(),
		bounds: &bounds.MemberBounds{Limits: limits, Hits: ledger, Now: time.Now},
	}
	if err := m.connect(); err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", name, err)
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	go func() {
		defer close(m.ended)
		_ = m.cache.Start(m.ctx)
		m.connections.CloseAll()
	}()
	return m, nil
}

// connect makes the clients and the cache, without a request.
func (m *Member) connect() (err error) {
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return fmt.Errorf("making HTTP client: %w", err)
	}
	if m.mapper, err = newMapper(m.config, m.http); err != nil {
		return err
	}
	if err := m.renewClient(); err != nil {
		return err
	}
	if m.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(m.config, m.http); err != nil {
		return fmt.Errorf("making discovery client: %w", err)
	}
	watching := patiently(m.config)
	watchClient, err := rest.HTTPClientFor(watching)
	if err != nil {
		return fmt.Errorf("making HTTP client for watches: %w", err)
	}
	never := time.Duration(0)
	m.cache, err = cache.New(watching, cache.Options{
		HTTPClient: watchClient,
		Scheme:     runtime.NewScheme(),
		Mapper:     m.mapper,
		SyncPeriod: &never,
		// A read must not begin a watch: its kind may have just ended.
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler:    m.onWatchError,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}),
		DefaultTransform:            cache.TransformStripManagedFields(),
		NewInformer:                 m.newInformer,
	})
	if err != nil {
		return fmt.Errorf("making cache: %w", err)
	}
	return nil
}

// renewClient makes the client anew, which remembers the resources of kinds.
func (m *Member) renewClient() error {
	made, err := client.New(m.config, client.Options{HTTPClient: m.http, Scheme: runtime.NewScheme(), Mapper: m.mapper})
	if err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	made = verifying(made, m.bounds.Hits, m.ask)
	m.client.Store(&made)
	return nil
}

// dialLimit is how long a connection may take to come about.
const dialLimit = 10 * time.Second

// tracked makes a configuration keep account of its connections. A network that
// loses everything tells nobody: what is sent into such a connection is repeated
// for minutes, while a new one would get through.
func tracked(config *rest.Config) *connrotation.ConnectionTracker {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}).DialContext
	}
	connections := connrotation.NewConnectionTracker()
	config.Dial = connrotation.NewDialerWithTracker(dial, connections).DialContext
	return connections
}

// patiently makes a configuration for watches: while the member does not answer,
// they wait inside of their request and go on when it does, instead of sleeping
// out a pause that grows to half a minute.
func patiently(config *rest.Config) *rest.Config {
	patient := rest.CopyConfig(config)
	patient.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return reconnect.Transport(next, reconnect.Options{WatchLimit: -1})
	})
	return patient
}

// close ends all watches of the member.
func (m *Member) close() {
	m.cancel()
	<-m.ended
	m.inventory.ended.Wait()
	m.kinds.reviews.Wait()
}

// Config is the client configuration of the member.
func (m *Member) Config() *rest.Config { return rest.CopyConfig(m.config) }

// Client reads and writes the member directly, without a cache.
func (m *Member) Client() client.Client { return *m.client.Load() }

func objectOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// roundTripper is a function around another http.RoundTripper, which stays in reach
// of those who close idle connections.
type roundTripper struct {
	next http.RoundTripper
	trip func(*http.Request) (*http.Response, error)
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.trip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }
