// Package watches lists and watches objects of any kind, in the control plane and in members.
//
// A subscription selects the objects of one kind in one cluster. It provides their events, a lister
// and the state of the watch. Subscriptions with the same query share one watch and one store.
//
// Invariants:
//   - The last subscription of a query ends its watch.
//   - A failed list, a lost connection, a denied request and a kind that is not served delete no
//     object from the store. Only an event or a complete list without the object does.
//   - An event is passed on once to each handler, in the order of the API server. Objects that existed
//     before the subscription are passed on as initial objects.
//   - A cluster that does not respond delays only its own watches.
package watches

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// ControlPlane is the name of the control plane among the clusters of a Manager.
const ControlPlane = ""

// ManagedSelector selects the objects that Karmada manages in a member.
const ManagedSelector = workv1alpha1.ManagedByKarmadaLabel + "=" + workv1alpha1.ManagedByKarmadaLabelValue

// Query selects the objects of a watch. Queries are compared with ==.
type Query struct {
	Kind schema.GroupVersionKind
	// LabelSelector and FieldSelector select the objects. Empty selects all objects.
	LabelSelector, FieldSelector string
	// Transform reduces each object before it is stored. nil stores objects without managed fields.
	Transform *Transform
}

// Transform reduces an object in place, so that the store needs less memory. It must keep the name,
// namespace, UID and resource version. Each transformation is declared once, as a variable, because
// subscriptions share a watch only if their queries point to the same Transform.
type Transform struct {
	Apply func(*unstructured.Unstructured)
}

// Subscriber is notified about the objects of a subscription. Its functions are called one after
// another. They must return quickly, and must not subscribe or unsubscribe with the same query.
type Subscriber struct {
	// Handler receives the events. The objects are shared and must not be changed. It may be nil.
	Handler toolscache.ResourceEventHandler
	// OnState is called after the phase of the watch changed. It may be nil.
	OnState func(before, after State)
	// Indexers are added to the store. Names must be unique among the subscribers of a query.
	Indexers toolscache.Indexers
}

// Manager runs the watches of a process.
type Manager struct {
	ctx context.Context //nolint:containedctx // watches start on demand and end with the process

	mu       sync.Mutex
	clusters map[string]*cluster
	fleets   []*Fleet
}

// NewManager returns a manager without clusters. All watches end when ctx ends.
func NewManager(ctx context.Context) *Manager {
	return &Manager{ctx: ctx, clusters: map[string]*cluster{}}
}

// Connect makes all watches of a cluster use the given API server. It replaces an earlier connection
// and waits until its requests have ended. Subscriptions stay open. Until the API server has returned
// the first list, their objects are not usable.
func (m *Manager) Connect(name string, server *Server) {
	for !m.cluster(name).setConnection(m.ctx, server) {
	}
	if name == ControlPlane {
		return
	}
	m.mu.Lock()
	fleets := slices.Clone(m.fleets)
	m.mu.Unlock()
	for _, fleet := range fleets {
		if err := fleet.add(name); err != nil {
			klog.FromContext(m.ctx).Error(err, "Subscribing in a connected cluster")
		}
	}
}

// Disconnect ends all requests to a cluster and waits until they have ended. Subscriptions stay open
// until they are closed.
func (m *Manager) Disconnect(name string) {
	c := m.cluster(name)
	c.setConnection(m.ctx, nil)
	m.mu.Lock()
	fleets := slices.Clone(m.fleets)
	m.mu.Unlock()
	for _, fleet := range fleets {
		fleet.remove(name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.remove() {
		delete(m.clusters, name)
	}
}

// Retry makes failed watches of a cluster continue at once, because the cause may be gone.
func (m *Manager) Retry(name string) { m.cluster(name).retry() }

// Subscribe starts the watch of a query in a cluster, unless it is running, and subscribes to it. A
// failed watch is retried. Subscribe does not wait for the cluster. The caller must close the
// subscription.
func (m *Manager) Subscribe(clusterName string, query Query, subscriber Subscriber) (*Subscription, error) {
	for {
		added, err := m.cluster(clusterName).subscribe(m.ctx, query, subscriber)
		if !errors.Is(err, errClusterRemoved) {
			return added, err
		}
	}
}

// errClusterRemoved reports that another goroutine removed a cluster without connection and watches.
var errClusterRemoved = errors.New("the cluster was removed")

// Find returns the objects of a watch that other subscribers run. It never starts a watch.
func (m *Manager) Find(clusterName string, query Query) (Objects, bool) {
	return m.cluster(clusterName).find(query)
}

func (m *Manager) cluster(name string) *cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[name]
	if c == nil {
		c = &cluster{name: name, changed: make(chan struct{}), watches: map[Query]*sharedWatch{}}
		m.clusters[name] = c
	}
	return c
}

// cluster contains the watches of one cluster.
type cluster struct {
	name string

	mu         sync.Mutex
	connection *connection
	// changed is closed when the connection changes.
	changed chan struct{}
	watches map[Query]*sharedWatch
	// isRemoved is true after the manager dropped the cluster.
	isRemoved bool
}

// remove marks a cluster that has no connection and no watches as removed, and reports whether it did.
func (c *cluster) remove() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isRemoved = c.connection == nil && len(c.watches) == 0
	return c.isRemoved
}

// connection is a Server that is in use.
type connection struct {
	*Server
	ctx    context.Context //nolint:containedctx // it ends when the connection is closed
	cancel context.CancelFunc
	// attempts counts the watches that use the connection.
	attempts sync.WaitGroup
}

// setConnection replaces the connection. It returns false if the cluster was removed.
func (c *cluster) setConnection(ctx context.Context, server *Server) bool {
	c.mu.Lock()
	if c.isRemoved {
		c.mu.Unlock()
		return false
	}
	previous := c.connection
	c.connection = nil
	if server != nil {
		c.connection = &connection{Server: server}
		c.connection.ctx, c.connection.cancel = context.WithCancel(ctx)
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if previous != nil {
		previous.cancel()
		previous.attempts.Wait()
	}
	return true
}

// acquireConnection waits for a connection. It returns nil if ctx ends. The caller calls
// attempts.Done when it does not use the connection any more.
func (c *cluster) acquireConnection(ctx context.Context) *connection {
	for {
		if ctx.Err() != nil {
			return nil
		}
		c.mu.Lock()
		current, changed := c.connection, c.changed
		if current != nil && current.ctx.Err() == nil {
			current.attempts.Add(1)
			c.mu.Unlock()
			return current
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

func (c *cluster) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watch := range c.watches {
		watch.retryNow()
	}
}

func (c *cluster) find(query Query) (Objects, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	watch, ok := c.watches[query]
	return Objects{watch}, ok
}

func (c *cluster) subscribe(ctx context.Context, query Query, subscriber Subscriber) (*Subscription, error) {
	c.mu.Lock()
	if c.isRemoved {
		c.mu.Unlock()
		return nil, errClusterRemoved
	}
	watch := c.watches[query]
	if watch == nil {
		watch = newSharedWatch(c, query)
		c.watches[query] = watch
		ctx, watch.cancel = context.WithCancel(ctx)
		go watch.run(ctx)
	} else {
		watch.retryNow()
	}
	watch.subscriptions++
	c.mu.Unlock()
	added := &Subscription{Objects: Objects{watch}, subscriber: subscriber}
	if err := watch.store.addSubscription(added); err != nil {
		added.Close()
		return nil, fmt.Errorf("watching %s in cluster %q: %w", query.Kind, c.name, err)
	}
	return added, nil
}

// unsubscribe ends the watch if no other subscription needs it.
func (c *cluster) unsubscribe(closed *Subscription) {
	closed.watch.store.removeSubscription(closed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed.watch.subscriptions--; closed.watch.subscriptions == 0 {
		closed.watch.end()
		delete(c.watches, closed.watch.query)
	}
}

// Fleet is a subscription to the same query in every connected member.
type Fleet struct {
	manager    *Manager
	query      Query
	subscriber func(cluster string) Subscriber

	mu            sync.Mutex
	subscriptions map[string]*Subscription
	isClosed      bool
}

// SubscribeFleet subscribes to a query in every member that is or will be connected. subscriber returns
// the subscriber for a member. The caller must close the fleet.
func (m *Manager) SubscribeFleet(query Query, subscriber func(cluster string) Subscriber) (*Fleet, error) {
	fleet := &Fleet{manager: m, query: query, subscriber: subscriber, subscriptions: map[string]*Subscription{}}
	m.mu.Lock()
	m.fleets = append(m.fleets, fleet)
	names := slices.Sorted(maps.Keys(m.clusters))
	m.mu.Unlock()
	var failures []error
	for _, name := range names {
		if name != ControlPlane && m.cluster(name).isConnected() {
			failures = append(failures, fleet.add(name))
		}
	}
	if err := errors.Join(failures...); err != nil {
		fleet.Close()
		return nil, err
	}
	return fleet, nil
}

func (c *cluster) isConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connection != nil
}

// add subscribes in a cluster. It does not hold the lock while it subscribes, because the handlers may
// read the fleet.
func (f *Fleet) add(cluster string) error {
	added, err := f.manager.Subscribe(cluster, f.query, f.subscriber(cluster))
	if err != nil {
		return err
	}
	f.mu.Lock()
	isNeeded := !f.isClosed && f.subscriptions[cluster] == nil
	if isNeeded {
		f.subscriptions[cluster] = added
	}
	f.mu.Unlock()
	if !isNeeded {
		added.Close()
	}
	return nil
}

func (f *Fleet) remove(cluster string) {
	f.mu.Lock()
	removed := f.subscriptions[cluster]
	delete(f.subscriptions, cluster)
	f.mu.Unlock()
	if removed != nil {
		removed.Close()
	}
}

// In returns the objects of one member. It returns false if the member is not connected.
func (f *Fleet) In(cluster string) (Objects, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	subscription, ok := f.subscriptions[cluster]
	if !ok {
		return Objects{}, false
	}
	return subscription.Objects, true
}

// Close closes the subscriptions in all members.
func (f *Fleet) Close() {
	f.manager.mu.Lock()
	f.manager.fleets = slices.DeleteFunc(f.manager.fleets, func(each *Fleet) bool { return each == f })
	f.manager.mu.Unlock()
	f.mu.Lock()
	closed := f.subscriptions
	f.subscriptions, f.isClosed = map[string]*Subscription{}, true
	f.mu.Unlock()
	for _, subscription := range closed {
		subscription.Close()
	}
}
