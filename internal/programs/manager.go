package programs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/reconnect"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// shutdownTimeout is how long the components of a process may take to end. The sum of this timeout
// and the renew deadline does not exceed the lease duration, after which another replica becomes
// the leader.
const shutdownTimeout = 5 * time.Second

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes types: %w", err)
	}
	if err := api.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Karmada types: %w", err)
	}
	return scheme, nil
}

// agentScheme returns a scheme with only the kinds that an agent reads and writes in the control
// plane. The conversions of all other kinds would need several MiB of memory.
func agentScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, certificatesv1.AddToScheme, api.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}

func newManager(karmada *rest.Config, o HostOptions) (manager.Manager, error) {
	newSchemeFor := newScheme
	if o.OnlyCluster != "" {
		newSchemeFor = agentScheme
	}
	scheme, err := newSchemeFor()
	if err != nil {
		return nil, err
	}
	if err := command.RegisterBuildInfo(metrics.Registry); err != nil {
		return nil, err
	}
	var lease *Lease
	if o.Election.Enabled && o.Lock == nil {
		if lease, err = newElectionLease(karmada, o.Election); err != nil {
			return nil, err
		}
		o.Lock = lease
	}
	if !o.RetriesRequests {
		karmada = withReconnect(karmada)
	}
	mgr, err := manager.New(karmada, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if lease != nil {
		lease.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lease.Identity()) //nolint:staticcheck // leader election still uses this API
	}
	if err := mgr.AddHealthzCheck(pingCheck, healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	return mgr, nil
}

// withReconnect makes read requests wait while the control plane is unavailable, and continue as
// soon as it is available. Otherwise every watch would have its own backoff of up to 30 s.
// Requests for a Lease do not wait, because the leader must notice that it cannot renew its Lease.
func withReconnect(karmada *rest.Config) *rest.Config {
	config := rest.CopyConfig(karmada)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return reconnect.NewTransport(next, reconnect.Options{WatchTimeout: -1, RetryUnavailable: true, OnLost: func(err error) {
			klog.Background().Info("Waiting for the control plane", "server", karmada.Host, "reason", err.Error())
		}, OnRecovered: func(after time.Duration) {
			klog.Background().Info("The control plane responds again", "server", karmada.Host, "after", after.Round(time.Millisecond))
		}})
	})
	return config
}

func managerOptions(scheme *runtime.Scheme, o HostOptions) manager.Options {
	timeout, yes, usePriorityQueue := shutdownTimeout, true, o.Gates.Enabled(gates.ControllerPriorityQueue)
	options := manager.Options{
		Scheme: scheme,
		Cache:  cache.Options{SyncPeriod: &o.Resync, DefaultTransform: cache.TransformStripManagedFields()},
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			made, err := cache.New(config, options)
			if err != nil {
				return nil, fmt.Errorf("making the cache: %w", err)
			}
			return loop.ShareIndexes(made), nil
		},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		MapperProvider: newRetryingMapper,
		Controller: config.Controller{
			RecoverPanic: &yes, UsePriorityQueue: &usePriorityQueue,
			// A process may add a component again after the component ended.
			SkipNameValidation: &yes,
		},
		LeaderElection:          o.Election.Enabled,
		LeaderElectionID:        o.Election.Name,
		LeaderElectionNamespace: o.Election.Namespace,
		// All controllers have ended when the Lease is released, so other replicas need not wait
		// until the Lease expires.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
	}
	if o.Election.Enabled {
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &o.Election.LeaseDuration, &o.Election.RenewDeadline,
			&o.Election.RetryPeriod
	}
	if o.Election.Enabled && o.Lock != nil {
		options.LeaderElectionResourceLockInterface = o.Lock
	}
	if o.OnWatchForbidden != nil {
		options.Cache.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				o.OnWatchForbidden()
			}
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		}
	}
	if only := o.OnlyCluster; only != "" {
		options.Cache.ByObject = agentCacheScope(only)
	}
	options.HealthProbeBindAddress, options.Metrics = servingAddresses(o.Serving)
	return options
}

// agentCacheScope limits the cache of a process that serves one cluster, because the process is
// not allowed to read other Clusters or the Works of other clusters.
func agentCacheScope(only string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", only)},
		&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{work.ExecutionNamespace(only): {}}},
	}
}

// pingCheck is the name of the health check that succeeds as long as the process responds.
const pingCheck = "ping"

// servingAddresses returns the addresses of health and metrics. If both are equal, the metrics
// server serves both.
func servingAddresses(s flags.Serving) (health string, metrics metricsserver.Options) {
	health, metrics = addressOrDisabled(s.Health), metricsserver.Options{BindAddress: addressOrDisabled(s.Metrics)}
	if health == disabledAddress || health != metrics.BindAddress {
		return health, metrics
	}
	handler := http.StripPrefix("/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{pingCheck: healthz.Ping}})
	metrics.ExtraHandlers = map[string]http.Handler{"/healthz": handler, "/healthz/": handler}
	return disabledAddress, metrics
}

// disabledAddress is the address of a server that is disabled.
const disabledAddress = "0"

func addressOrDisabled(address string) string {
	if address == "" {
		return disabledAddress
	}
	return address
}

// cacheWarmer starts the informers of a component before its process becomes the leader, so that
// the caches are full when the process becomes the leader.
type cacheWarmer struct {
	cache cache.Cache
	kinds []client.Object
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (cacheWarmer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (c cacheWarmer) Start(ctx context.Context) error {
	for _, kind := range c.kinds {
		if _, err := c.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return nil
}
