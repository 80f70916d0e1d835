package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/proxying"
	"karmada.io/karmada/internal/servers/search/query"
)

// assembly contains the components of a server while they are created.
type assembly struct {
	sources
	karmada     *karmadaCache
	members     *member.Clusters
	cache       *objectcache.Cache
	callers     *memberproxy.Proxy
	permissions permissions
	metrics     *metrics
	components  *components
	stores      *openSearchStores
	leader      leaderTasks
}

// assemble creates the components of a server. The components live until ctx ends.
func assemble(ctx context.Context, from sources) (_ *components, err error) {
	a := &assembly{sources: from, components: &components{}, leader: leaderTasks{lock: from.options.Lock}}
	defer func() {
		if err != nil {
			a.components.release()
		}
	}()
	for _, step := range []func(context.Context) error{a.addCache, a.addCallers, a.addSearch, a.addProxy, a.addStatus, a.addOpenSearch} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	a.components.tasks = append(a.components.tasks, a.leader.run)
	return a.components, nil
}

// addCache adds the cache of member objects, and what it depends on.
func (a *assembly) addCache(ctx context.Context) (err error) {
	if a.metrics, err = newMetrics(a.options.Registerer); err != nil {
		return err
	}
	a.components.addCloser(a.metrics.unregister)
	// The handlers are called only after the cache of objects is set, because nothing runs yet.
	a.karmada, err = newKarmadaCache(ctx, a.sources,
		func(name string) { a.cache.NotifyCluster(name) }, func(name string) { a.cache.NotifyRegistry(name) }, a.removeCluster)
	if err != nil {
		return err
	}
	a.components.rules = a.karmada.rules()
	if a.members, err = a.newMembers(ctx); err != nil {
		return err
	}
	a.cache, err = objectcache.New(objectcache.Options{Karmada: a.karmada, Members: a.members})
	if err != nil {
		return err
	}
	a.metrics.cache = a.cache
	a.components.awaitCaches = func(ctx context.Context, limit time.Duration) { a.cache.WaitForSync(ctx, limit) }
	a.components.addTask("watching Clusters and ResourceRegistries", a.karmada.run)
	a.components.addTask("caching member objects", func(ctx context.Context) error {
		if !a.karmada.awaitSync(ctx) {
			return nil // the server ends
		}
		return a.cache.Run(ctx)
	})
	return nil
}

// removeCluster closes the connections to a deleted cluster.
func (a *assembly) removeCluster(name string) {
	a.callers.RemoveMember(name)
}

// newMembers returns the connections of the cache to members.
func (a *assembly) newMembers(ctx context.Context) (*member.Clusters, error) {
	httpClient, err := clientrest.HTTPClientFor(a.sources.karmada)
	if err != nil {
		return nil, fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	secrets, err := client.New(a.sources.karmada, client.Options{Scheme: scheme, HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	versions, err := metadata.NewForConfigAndClient(metadata.ConfigFor(a.sources.karmada), httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	return member.NewClusters(ctx, member.Options{
		Karmada: a.karmada, Secrets: secrets, SecretMetadata: versions, Throttle: a.options.MemberThrottle,
		AgentAddresses: agentaddress.NewGuard(a.options.AgentAddresses, a.sources.karmada.Host),
	}), nil
}

// sweepPeriod is the interval at which the server closes connections to deleted clusters, in addition to the
// clusters' events.
const sweepPeriod = 30 * time.Second

// addCallers adds the connections to members for callers, and their permissions.
func (a *assembly) addCallers(context.Context) (err error) {
	cached, fresh, start := memberproxy.NewSecretGetters(a.karmadaClient)
	a.callers, err = memberproxy.New(memberproxy.Sources{
		Cluster: a.karmada.cluster, Clusters: a.karmada.allClusters, Secret: cached, FreshSecret: fresh,
		Karmada: a.sources.karmada, Budgets: a.options.Budgets, AgentAddresses: a.options.AgentAddresses,
	})
	if err != nil {
		return err
	}
	a.components.addCloser(a.callers.Destroy)
	a.components.tasks = append(a.components.tasks, func(ctx context.Context) {
		start(ctx)
		wait.UntilWithContext(ctx, a.callers.RemoveDeletedMembers, sweepPeriod)
	})
	a.permissions = allPermissions{}
	if a.options.AuthorizeCallers {
		a.permissions = newMemberPermissions(a.callers, time.Now)
	}
	return nil
}

// addSearch adds the resource "search" with its index.
func (a *assembly) addSearch(ctx context.Context) error {
	if a.options.DisableSearch {
		return nil
	}
	searcher, err := a.newSearcher(ctx)
	if err != nil {
		return err
	}
	a.components.search = query.New(query.Options{Cache: a.cache, Searcher: searcher, Permissions: a.permissions})
	return nil
}

// newSearcher returns the searcher for queries. A feed keeps an index on disk equal to the cache.
func (a *assembly) newSearcher(ctx context.Context) (index.Searcher, error) {
	if a.options.Index == IndexMemory {
		return index.NewMemory(a.cache), nil
	}
	directory := a.options.IndexDirectory
	if directory == "" {
		temporary, err := os.MkdirTemp("", "karmada-search-")
		if err != nil {
			return nil, fmt.Errorf("creating the directory of the full-text index, see --search-index-directory: %w", err)
		}
		a.components.addCloser(func() { _ = os.RemoveAll(temporary) }) // a temporary directory
		directory = filepath.Join(temporary, "index")
	}
	onDisk, err := index.Open(index.Options{Directory: directory, Cache: a.cache, Logger: klog.FromContext(ctx)})
	if err != nil {
		return nil, fmt.Errorf("opening the index, see --search-index-directory: %w", err)
	}
	a.components.addCloser(func() {
		if err := onDisk.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "Closing the full-text index", "directory", directory)
		}
	})
	follower := feed.New(a.cache, onDisk, feed.Limits{})
	onDisk.SetProgress(follower)
	a.metrics.indexState = follower.State
	a.components.tasks = append(a.components.tasks, follower.Run)
	return onDisk, nil
}

// addProxy adds the resource "proxying".
func (a *assembly) addProxy(context.Context) error {
	if a.options.DisableProxy {
		return nil
	}
	options := proxying.Options{
		Cache: a.cache, Reads: a.callers, Forwards: a.callers, Permissions: a.permissions, Watches: a.metrics.countWatches,
		MinRequestTimeout: a.options.minRequestTimeout(),
	}
	if !a.options.AuthorizeCallers {
		options.Reads = memberproxy.Own{Proxy: a.callers}
	}
	a.components.proxy = proxying.New(options, proxying.Limits{})
	return nil
}
