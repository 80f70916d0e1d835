package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/watches"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// secretMaxAge is the age after which a Secret that is not watched is read again.
const secretMaxAge = 5 * time.Minute

// Options configure a Clusters.
type Options struct {
	// Karmada reads Clusters from a cache of the control plane.
	Karmada client.Reader
	// Secrets reads the Secrets of clusters. It should read from the API server, because a cache of
	// all Secrets would hold unrelated Secrets.
	Secrets client.Reader
	// SecretMetadata watches the names and versions of the Secrets of clusters, so that a change
	// takes effect at once. If it is nil, a Secret is read again every few minutes, and when a
	// member rejects the credentials.
	SecretMetadata metadata.Interface
	// LocalConfig returns the client configuration for a process that runs in a member. Such a
	// process does not need the Secret of the cluster. If LocalConfig is nil, the process connects
	// to each member as the Cluster of the member describes.
	LocalConfig LocalConfigFunc
	// Throttle limits the rate of requests to each member. The zero value sets no limit.
	Throttle Throttle
	// WrapTransport wraps the transport to every member, also the transport for watches. It may be
	// nil.
	WrapTransport transport.WrapperFunc
	// Delivered returns the size of the objects that the control plane delivers to a member. The
	// limits of the caches of the member depend on this size. A nil function means that nothing is
	// delivered.
	Delivered func(cluster string) bounds.DeliveredSize
	// AgentAddresses checks the addresses that agents choose. If it is nil, no exceptions are allowed.
	AgentAddresses *agentaddress.Guard
	// Watches runs the watches in members. If it is nil, NewClusters creates a manager.
	Watches *watches.Manager
	// Metrics counts opened and closed members. A nil Metrics counts nothing.
	Metrics *Metrics
	// Now returns the current time. nil means the system clock.
	Now func() time.Time
}

// Clusters opens a member when it is first needed and keeps it open. It opens a member again if the
// address in its Cluster changes.
type Clusters struct {
	options Options
	watches *watches.Manager

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // members are opened on demand and live as long as what was given to Start
	entries     map[string]*memberEntry
	subscribers []func(Event)
	// onUnhealthy is called when a member becomes unhealthy. onRecovery is called when a member
	// becomes healthy again.
	onUnhealthy, onRecovery []func(name string)
	onWatchRestored         []func(name string, kind schema.GroupVersionKind)
	// secretsInUse contains the Secret of each cluster, by the name of the cluster. refreshing
	// contains the clusters whose changed Secret is about to be read.
	secretsInUse   map[string]types.NamespacedName
	refreshing     map[string]bool
	secretVersions *secretVersions
}

// memberEntry is one member together with the inputs from which its connection was made.
type memberEntry struct {
	mu          sync.Mutex
	member      *Member
	isClosed    bool
	source      connectionSource
	credentials *credentials
	// secretKey and secretVersion identify the Secret that was read at the time secretReadAt.
	secretKey     types.NamespacedName
	secretVersion string
	secretReadAt  time.Time
	// health is kept when the connection is closed. It can be read without waiting for a
	// connection.
	health *healthTracker
	// managed is kept when the connection is replaced.
	managed *managedWatches
}

// connectionSource contains the fields of a Cluster and its Secret that determine the connection.
type connectionSource struct {
	uid         types.UID
	id          string
	endpoint    string
	insecure    bool
	proxy       string
	proxyHeader map[string]string
	ca          string
	// mode decides whether the addresses are checked.
	mode clusterv1alpha1.ClusterSyncMode
}

func (c connectionSource) equal(other connectionSource) bool {
	return c.uid == other.uid && c.id == other.id && c.endpoint == other.endpoint && c.insecure == other.insecure &&
		c.proxy == other.proxy && c.ca == other.ca && c.mode == other.mode && maps.Equal(c.proxyHeader, other.proxyHeader)
}

// NewClusters returns a Clusters without open members. All members that it opens are closed when
// ctx ends.
func NewClusters(ctx context.Context, options Options) *Clusters {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.AgentAddresses == nil {
		options.AgentAddresses = agentaddress.NewGuard(agentaddress.Options{}, "")
	}
	if options.Watches == nil {
		options.Watches = watches.NewManager(ctx)
	}
	c := &Clusters{
		options: options, watches: options.Watches, ctx: ctx, entries: map[string]*memberEntry{},
		secretsInUse: map[string]types.NamespacedName{}, refreshing: map[string]bool{},
	}
	c.secretVersions = &secretVersions{karmada: options.SecretMetadata, onChange: c.refreshUsers, namespaces: map[string]namespaceWatch{}}
	return c
}

// Subscribe makes Clusters call notify for every change of a managed object in any member. It must
// be called before the first Get. notify must return quickly.
func (c *Clusters) Subscribe(notify func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, notify)
}

func (c *Clusters) publishEvent(event Event) {
	for _, notify := range c.subscribers {
		notify(event)
	}
}

// OnWatchRestored makes Clusters call notify for every kind that a member serves again, or allows to
// watch again. Objects of the kind may have changed meanwhile. OnWatchRestored must be called before
// the first Get. notify must return quickly.
func (c *Clusters) OnWatchRestored(notify func(name string, kind schema.GroupVersionKind)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onWatchRestored = append(c.onWatchRestored, notify)
}

func (c *Clusters) publishRestoredWatch(name string, kind schema.GroupVersionKind) {
	for _, notify := range c.onWatchRestored {
		notify(name, kind)
	}
}

// Get returns the member with this name. It does not wait for the member, because it sends no
// request to it.
func (c *Clusters) Get(ctx context.Context, name string) (*Member, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	return c.GetForCluster(ctx, cluster)
}

// GetForCluster returns the member like Get, for a Cluster that the caller has already read.
func (c *Clusters) GetForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*Member, error) {
	for {
		opened, err := c.getFromEntry(ctx, c.entry(cluster.Name), cluster)
		if !errors.Is(err, errEntryClosed) {
			return opened, err
		}
	}
}

// errEntryClosed reports that the entry of a member was removed.
var errEntryClosed = errors.New("the entry of the member was removed")

// getFromEntry returns the member of an entry, and opens the member if needed. It opens no member
// for an entry that was removed, because nothing would close that member.
func (c *Clusters) getFromEntry(ctx context.Context, e *memberEntry, cluster *clusterv1alpha1.Cluster) (*Member, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosed {
		return nil, errEntryClosed
	}
	if e.member != nil && c.isCurrent(e, cluster) {
		c.options.Metrics.countReused()
		return e.member, nil
	}
	secret, err := c.secretOrEmpty(ctx, cluster)
	if err != nil {
		if e.member != nil && c.hasSameSource(e, cluster) {
			// If the control plane does not respond or the Secret does not exist, an open member
			// stays in use. Only a missing Secret is reported.
			e.credentials.isSecretMissing.Store(apierrors.IsNotFound(err))
			c.options.Metrics.countReused()
			return e.member, nil
		}
		return nil, err
	}
	return c.openEntry(ctx, e, cluster, secret)
}

func (c *Clusters) openEntry(ctx context.Context, e *memberEntry, cluster *clusterv1alpha1.Cluster,
	secret *corev1.Secret) (*Member, error) {
	source := newConnectionSource(cluster)
	source.ca = string(secret.Data[clusterv1alpha1.SecretCADataKey])
	if e.member != nil && e.source.equal(source) {
		if _, err := c.newConfig(cluster, secret, e.credentials); err != nil {
			return nil, err
		}
		c.recordSecret(e, cluster, secret)
		c.options.Metrics.countReused()
		return e.member, nil
	}
	if err := c.requireClusterExists(ctx, cluster); err != nil {
		return nil, err
	}
	creds := &credentials{now: c.options.Now, readSecret: func(ctx context.Context, ref types.NamespacedName) (*corev1.Secret, error) {
		return c.readSecret(ctx, cluster.Name, ref)
	}}
	config, err := c.newConfig(cluster, secret, creds)
	if err != nil {
		return nil, err
	}
	config.Wrap(c.options.WrapTransport)
	verifier, err := newIdentityVerifier(cluster, config, c.options.Metrics)
	if err != nil {
		return nil, err
	}
	//nolint:contextcheck // a member outlives the request that opens it
	opened, err := openMember(c.ctx, cluster.Name, config, verifier, e.health, creds, e.managed)
	if err != nil {
		return nil, err
	}
	opened.configureBounds(c.options)
	server, err := opened.watchServer()
	if err != nil {
		opened.close()
		return nil, err
	}
	c.options.Metrics.countOpened()
	c.watches.Connect(cluster.Name, server)
	if e.member != nil {
		c.closeEntry(e)
	}
	e.member, e.source, e.credentials = opened, source, creds
	c.recordSecret(e, cluster, secret)
	return opened, nil
}

// recordSecret records which Secret was read, and sets the metric of the expiration of the
// credentials.
func (c *Clusters) recordSecret(e *memberEntry, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) {
	e.secretKey, e.secretVersion, e.secretReadAt = client.ObjectKeyFromObject(secret), secret.ResourceVersion, c.options.Now()
	if details := e.credentials.details.Load(); details != nil {
		c.options.Metrics.setCredentialExpiry(cluster.Name, details.Validity)
	}
}

// requireClusterExists returns an error if a Cluster no longer exists. It is called before a member
// is opened, because the given Cluster may be a stale copy of a deleted Cluster, and nothing would
// close that member.
func (c *Clusters) requireClusterExists(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	err := c.options.Karmada.Get(ctx, types.NamespacedName{Name: cluster.Name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("reading cluster %q: %w", cluster.Name, err)
	}
	return nil
}

// isCurrent reports whether an open member can be used without reading the Secret of its cluster
// again.
func (c *Clusters) isCurrent(e *memberEntry, cluster *clusterv1alpha1.Cluster) bool {
	if !c.hasSameSource(e, cluster) {
		return false
	}
	young := c.options.Now().Sub(e.secretReadAt) < secretMaxAge
	if e.credentials.secretKey.Load() == nil {
		return young
	}
	ref, ok := secretKeyOf(cluster)
	if !ok || ref != e.secretKey {
		return false
	}
	if version, known := c.secretVersions.get(c.ctx, ref); known {
		return version == e.secretVersion
	}
	return young
}

func (c *Clusters) hasSameSource(e *memberEntry, cluster *clusterv1alpha1.Cluster) bool {
	source := newConnectionSource(cluster)
	source.ca = e.source.ca
	return e.source.equal(source)
}

func newConnectionSource(cluster *clusterv1alpha1.Cluster) connectionSource {
	return connectionSource{
		uid: cluster.UID, id: cluster.Spec.ID, endpoint: cluster.Spec.APIEndpoint, insecure: cluster.Spec.InsecureSkipTLSVerification,
		proxy: cluster.Spec.ProxyURL, proxyHeader: cluster.Spec.ProxyHeader,
		mode: cluster.Spec.SyncMode,
	}
}

// CloseMember closes the member with this name.
func (c *Clusters) CloseMember(name string) {
	c.mu.Lock()
	e := c.entries[name]
	delete(c.entries, name)
	delete(c.secretsInUse, name)
	needed := map[string]bool{}
	for _, ref := range c.secretsInUse {
		needed[ref.Namespace] = true
	}
	c.mu.Unlock()
	c.secretVersions.stopUnneeded(func(namespace string) bool { return needed[namespace] })
	c.options.Metrics.setCredentialExpiry(name, domain.Validity{})
	c.options.Metrics.deleteMember(name)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isClosed = true
	e.managed.close()
	c.watches.Disconnect(name)
	if e.member != nil {
		c.closeEntry(e)
	}
}

// closeEntry closes the member of an entry. The caller holds e.mu.
func (c *Clusters) closeEntry(e *memberEntry) {
	e.member.close()
	e.member = nil
	c.options.Metrics.countClosed()
}

func (c *Clusters) entry(name string) *memberEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	if !ok {
		e = &memberEntry{health: c.newHealthTracker(name), managed: &managedWatches{
			member: name, manager: c.watches, notify: c.publishEvent, subscriptions: map[schema.GroupVersionKind]*watches.Subscription{},
			onRestored: func(kind schema.GroupVersionKind) { c.publishRestoredWatch(name, kind) },
		}}
		c.entries[name] = e
	}
	return e
}
