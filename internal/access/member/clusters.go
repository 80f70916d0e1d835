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
	"karmada.io/karmada/internal/access/member/bounds"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// secretMaxAge is how old a token may be before its Secret is read again, where
// nobody tells of changes.
const secretMaxAge = 5 * time.Minute

// Options configure Clusters.
type Options struct {
	// Karmada reads Clusters from a cache of the control plane.
	Karmada client.Reader
	// Secrets reads the clusters' Secrets; it should ask the control plane, for a
	// cache of all Secrets would hold what is none of our business.
	Secrets client.Reader
	// Follow watches the names and versions of the clusters' Secrets, so that a change
	// counts at once; nil reads them again every few minutes, and when a member
	// refuses what it is shown.
	Follow metadata.Interface
	// Local leads a process that runs in a member to it, without its Secret; nil
	// reaches all members by what their Clusters say.
	Local Local
	// Throttle limits the requests to each member; the zero value does not.
	Throttle Throttle
	// Wrap is put around the transport to every member, watches included; nil puts
	// nothing there.
	Wrap transport.WrapperFunc
	// Delivered says how much the control plane wants to be in a member, which bounds
	// what the caches of the member hold; nil means nothing.
	Delivered func(cluster string) bounds.Delivered
	// Metrics count what is opened and closed; nil counts nothing.
	Metrics *Metrics
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Clusters opens members when they are first needed, keeps them open, and opens
// them anew when their Cluster says that they are elsewhere.
type Clusters struct {
	options Options

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // members are opened on demand and live as long as what was given to Start
	entries     map[string]*entry
	subscribers []func(Event)
	// onLoss and onRecovery are told what members do.
	onLoss, onRecovery []func(name string)
	onReturn           []func(name string, kind schema.GroupVersionKind)
	// users are the Secrets in use by the names of clusters, refreshing the clusters
	// whose changed Secret is about to be read.
	users      map[string]types.NamespacedName
	refreshing map[string]bool
	versions   *versions
}

// entry is one member with what it was opened with.
type entry struct {
	mu        sync.Mutex
	member    *Member
	forgotten bool
	from      source
	shown     *credentials
	// secret and version are what was read, at readAt.
	secret  types.NamespacedName
	version string
	readAt  time.Time
	// liveness outlives the connection, and is known without waiting for one.
	liveness *liveness
}

// source is the part of a Cluster and its Secret that a connection depends on.
type source struct {
	uid         types.UID
	id          string
	endpoint    string
	insecure    bool
	proxy       string
	proxyHeader map[string]string
	ca          string
}

func (s source) equal(other source) bool {
	return s.uid == other.uid && s.id == other.id && s.endpoint == other.endpoint && s.insecure == other.insecure &&
		s.proxy == other.proxy && s.ca == other.ca && maps.Equal(s.proxyHeader, other.proxyHeader)
}

// NewClusters makes an empty set; ctx bounds the life of everything it opens.
func NewClusters(ctx context.Context, options Options) *Clusters {
	if options.Now == nil {
		options.Now = time.Now
	}
	c := &Clusters{
		options: options, ctx: ctx, entries: map[string]*entry{},
		users: map[string]types.NamespacedName{}, refreshing: map[string]bool{},
	}
	c.versions = &versions{karmada: options.Follow, changed: c.secretChanged, spaces: map[string]followed{}}
	return c
}

// Subscribe calls notify for every change of a managed object in any member. It
// must be called before the first Get. notify must return quickly.
func (c *Clusters) Subscribe(notify func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, notify)
}

func (c *Clusters) publish(event Event) {
	for _, notify := range c.subscribers {
		notify(event)
	}
}

// OnReturn calls notify for every kind that a member serves again after the watch of
// the kind had ended, or lets be watched again. Its objects may have changed meanwhile.
// OnReturn must be called before the first Get. notify must return quickly.
func (c *Clusters) OnReturn(notify func(name string, kind schema.GroupVersionKind)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReturn = append(c.onReturn, notify)
}

func (c *Clusters) publishReturn(name string, kind schema.GroupVersionKind) {
	for _, notify := range c.onReturn {
		notify(name, kind)
	}
}

// Get returns the way into the member called name. It asks the member nothing,
// so it does not block on one that does not answer.
func (c *Clusters) Get(ctx context.Context, name string) (*Member, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.options.Karmada.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	return c.For(ctx, cluster)
}

// For is Get for a Cluster that was read already.
func (c *Clusters) For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*Member, error) {
	for {
		opened, err := c.through(ctx, c.entry(cluster.Name), cluster)
		if !errors.Is(err, errForgotten) {
			return opened, err
		}
	}
}

// errForgotten tells that an entry is none any more.
var errForgotten = errors.New("the member was forgotten")

// through is For by an entry. One that was forgotten since it was taken must hold
// nothing any more, for nobody would close it.
func (c *Clusters) through(ctx context.Context, e *entry, cluster *clusterv1alpha1.Cluster) (*Member, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.forgotten {
		return nil, errForgotten
	}
	if e.member != nil && c.current(e, cluster) {
		c.options.Metrics.reused()
		return e.member, nil
	}
	secret, err := c.credentialsOf(ctx, cluster)
	if err != nil {
		if e.member != nil && c.unmoved(e, cluster) {
			// A control plane that does not answer is no reason to let go of a
			// member that does. Nor is a Secret that is gone; that is told.
			e.shown.missing.Store(apierrors.IsNotFound(err))
			c.options.Metrics.reused()
			return e.member, nil
		}
		return nil, err
	}
	return c.reopen(ctx, e, cluster, secret)
}

func (c *Clusters) reopen(ctx context.Context, e *entry, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*Member, error) {
	from := sourceOf(cluster)
	from.ca = string(secret.Data[clusterv1alpha1.SecretCADataKey])
	if e.member != nil && e.from.equal(from) {
		if _, err := c.configure(cluster, secret, e.shown); err != nil {
			return nil, err
		}
		c.note(e, cluster, secret)
		c.options.Metrics.reused()
		return e.member, nil
	}
	if err := c.stillThere(ctx, cluster); err != nil {
		return nil, err
	}
	shown := &credentials{now: c.options.Now, read: func(ctx context.Context, ref types.NamespacedName) (*corev1.Secret, error) {
		return c.readSecret(ctx, cluster.Name, ref)
	}}
	config, err := c.configure(cluster, secret, shown)
	if err != nil {
		return nil, err
	}
	config.Wrap(c.options.Wrap)
	proof, err := newIdentity(cluster, config, c.options.Metrics)
	if err != nil {
		return nil, err
	}
	opened, err := open(c.ctx, cluster.Name, config, proof, e.liveness, shown, c.publish)
	if err != nil {
		return nil, err
	}
	opened.bound(c.options)
	opened.returned = func(kind schema.GroupVersionKind) { c.publishReturn(cluster.Name, kind) }
	c.options.Metrics.opened()
	if e.member != nil {
		c.close(e)
	}
	e.member, e.from, e.shown = opened, from, shown
	c.note(e, cluster, secret)
	return opened, nil
}

// note remembers which Secret was read, and shows how long it is good for.
func (c *Clusters) note(e *entry, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) {
	e.secret, e.version, e.readAt = client.ObjectKeyFromObject(secret), secret.ResourceVersion, c.options.Now()
	if known := e.shown.known.Load(); known != nil {
		c.options.Metrics.valid(cluster.Name, known.Validity)
	}
}

// stillThere keeps a cluster from being opened by who has not heard yet that it is
// gone: nobody would close it.
func (c *Clusters) stillThere(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	err := c.options.Karmada.Get(ctx, types.NamespacedName{Name: cluster.Name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("reading cluster %q: %w", cluster.Name, err)
	}
	return nil
}

// current tells whether an open member can be used without reading its Secret.
func (c *Clusters) current(e *entry, cluster *clusterv1alpha1.Cluster) bool {
	if !c.unmoved(e, cluster) {
		return false
	}
	young := c.options.Now().Sub(e.readAt) < secretMaxAge
	if e.shown.secret.Load() == nil {
		return young
	}
	ref, ok := secretOf(cluster)
	if !ok || ref != e.secret {
		return false
	}
	if version, known := c.versions.of(c.ctx, ref); known {
		return version == e.version
	}
	return young
}

func (c *Clusters) unmoved(e *entry, cluster *clusterv1alpha1.Cluster) bool {
	from := sourceOf(cluster)
	from.ca = e.from.ca
	return e.from.equal(from)
}

func sourceOf(cluster *clusterv1alpha1.Cluster) source {
	return source{
		uid: cluster.UID, id: cluster.Spec.ID, endpoint: cluster.Spec.APIEndpoint, insecure: cluster.Spec.InsecureSkipTLSVerification,
		proxy: cluster.Spec.ProxyURL, proxyHeader: cluster.Spec.ProxyHeader,
	}
}

// Forget closes the member called name.
func (c *Clusters) Forget(name string) {
	c.mu.Lock()
	e := c.entries[name]
	delete(c.entries, name)
	delete(c.users, name)
	needed := map[string]bool{}
	for _, ref := range c.users {
		needed[ref.Namespace] = true
	}
	c.mu.Unlock()
	c.versions.keep(func(namespace string) bool { return needed[namespace] })
	c.options.Metrics.valid(name, domain.Validity{})
	c.options.Metrics.unbounded(name)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgotten = true
	if e.member != nil {
		c.close(e)
	}
}

// close closes what an entry holds; e.mu is held.
func (c *Clusters) close(e *entry) {
	e.member.close()
	e.member = nil
	c.options.Metrics.closed()
}

func (c *Clusters) entry(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	if !ok {
		e = &entry{liveness: c.livenessOf(name)}
		c.entries[name] = e
	}
	return e
}
