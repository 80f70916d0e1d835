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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
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
	client client.Client
	mapper meta.RESTMapper
	cache  cache.Cache
	notify func(Event)
	ctx    context.Context //nolint:containedctx // watches that start later live as long as the member
	cancel context.CancelFunc
	ended  chan struct{}

	// connections are all that are open to the member.
	connections *connrotation.ConnectionTracker
	// http sends requests, discovery those about the server itself.
	http      *http.Client
	discovery *discovery.DiscoveryClient
	apis      apis

	inventory  inventory
	liveness   *liveness
	probeLimit time.Duration
	shown      *credentials

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]cache.Informer
}

// open connects to a member. Nothing is asked of it yet, so that a member that
// does not answer can be opened too.
func open(ctx context.Context, name string, config *rest.Config, alive *liveness, shown *credentials, notify func(Event)) (*Member, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return listening(next, alive) })
	connections := tracked(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making HTTP client of member %q: %w", name, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making REST mapper of member %q: %w", name, err)
	}
	scheme := runtime.NewScheme()
	memberClient, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making client of member %q: %w", name, err)
	}
	asking, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making discovery client of member %q: %w", name, err)
	}
	watching := patiently(config)
	watchClient, err := rest.HTTPClientFor(watching)
	if err != nil {
		return nil, fmt.Errorf("making HTTP client of member %q: %w", name, err)
	}
	never := time.Duration(0)
	objects, err := cache.New(watching, cache.Options{
		HTTPClient:           watchClient,
		Scheme:               scheme,
		Mapper:               mapper,
		SyncPeriod:           &never,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making cache of member %q: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Member{
		Name: name, config: config, client: memberClient, mapper: mapper, cache: objects, notify: notify, liveness: alive, shown: shown,
		probeLimit:  probeTimeout,
		connections: connections, http: httpClient, discovery: asking,
		ctx: ctx, cancel: cancel, ended: make(chan struct{}), watched: map[schema.GroupVersionKind]cache.Informer{},
	}
	go func() {
		defer close(m.ended)
		_ = objects.Start(ctx)
		connections.CloseAll()
	}()
	return m, nil
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
}

// Config is the client configuration of the member.
func (m *Member) Config() *rest.Config { return rest.CopyConfig(m.config) }

// Client reads and writes the member directly, without a cache.
func (m *Member) Client() client.Client { return m.client }

// Watch makes sure that managed objects of a kind are watched. It does not wait
// for the first list. A kind that the member does not serve gives an error for
// which meta.IsNoMatchError holds.
func (m *Member) Watch(ctx context.Context, kind schema.GroupVersionKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.watched[kind]; ok {
		return nil
	}
	if _, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name, err)
	}
	informer, err := m.cache.GetInformer(ctx, objectOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	if _, err := informer.AddEventHandler(m.handler(kind)); err != nil {
		return fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	m.watched[kind] = informer
	return nil
}

func (m *Member) handler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(*unstructured.Unstructured); ok {
				m.notify(Event{Member: m.Name, Kind: kind, New: added, Initial: initial})
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if ok && ok2 {
				m.notify(Event{Member: m.Name, Kind: kind, Old: older, New: newer})
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if removed, ok := obj.(*unstructured.Unstructured); ok {
				m.notify(Event{Member: m.Name, Kind: kind, Old: removed})
			}
		},
	}
}

// Get returns an object of the member: from the cache when its kind is watched
// and the first list has arrived, else by asking. cached tells which. A cached
// answer sees managed objects only. The object must not be changed. Not found is
// an error for which apierrors.IsNotFound holds.
func (m *Member) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error) {
	object = objectOf(kind)
	if m.synced(kind) {
		return object, true, m.cache.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	}
	object, err = m.GetLive(ctx, kind, key)
	return object, false, err
}

// GetLive asks the member for an object.
func (m *Member) GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := objectOf(kind)
	if err := m.client.Get(ctx, key, object); err != nil {
		return nil, err
	}
	return object, nil
}

// AwaitSync waits for the first list of a watched kind, limit at most, and tells
// whether it has arrived.
func (m *Member) AwaitSync(ctx context.Context, kind schema.GroupVersionKind, limit time.Duration) bool {
	if m.synced(kind) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return toolscache.WaitForCacheSync(ctx.Done(), func() bool { return m.synced(kind) })
}

func (m *Member) synced(kind schema.GroupVersionKind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	informer, ok := m.watched[kind]
	return ok && informer.HasSynced()
}

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
