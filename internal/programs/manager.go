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
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// shutdownLimit is how long the components of a process may take to end. With the
// time that a leader tries to renew its Lease it is no longer than others wait for
// a silent leader.
const shutdownLimit = 5 * time.Second

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

// memberScheme has the kinds that an agent reads and writes in the control plane.
// The conversions of all others would cost it megabytes.
func memberScheme() (*runtime.Scheme, error) {
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
	kinds := newScheme
	if o.Settings.Only != "" {
		kinds = memberScheme
	}
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	if err := command.RegisterBuildInfo(metrics.Registry); err != nil {
		return nil, err
	}
	var own *Lease
	if o.Election.Enabled && o.Lock == nil {
		if own, err = leaseOf(karmada, o.Election); err != nil {
			return nil, err
		}
		o.Lock = own
	}
	if !o.Waits {
		karmada = patiently(karmada)
	}
	mgr, err := manager.New(karmada, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if own != nil {
		own.LockConfig.EventRecorder = mgr.GetEventRecorderFor(own.Identity()) //nolint:staticcheck // elections write this API
	}
	if err := mgr.AddHealthzCheck(pingCheck, healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	return mgr, nil
}

// patiently makes what reads wait inside of its request while the control plane is
// away, and go on when it is back. Watches would sleep out a pause that grows to half
// a minute, each of them, and nothing would happen in it. A Lease does not wait: its
// holder must know that it cannot renew it.
func patiently(karmada *rest.Config) *rest.Config {
	patient := rest.CopyConfig(karmada)
	patient.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return reconnect.Transport(next, reconnect.Options{WatchLimit: -1, Unavailable: true, Lost: func(err error) {
			klog.Background().Info("Waiting for the control plane", "server", karmada.Host, "reason", err.Error())
		}, Back: func(after time.Duration) {
			klog.Background().Info("The control plane answers again", "server", karmada.Host, "after", after.Round(time.Millisecond))
		}})
	})
	return patient
}

func managerOptions(scheme *runtime.Scheme, o HostOptions) manager.Options {
	limit, yes, ranked := shutdownLimit, true, o.Settings.Gates.Enabled(gates.ControllerPriorityQueue)
	options := manager.Options{
		Scheme: scheme,
		Cache:  cache.Options{SyncPeriod: &o.Resync, DefaultTransform: cache.TransformStripManagedFields()},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{
			RecoverPanic: &yes, UsePriorityQueue: &ranked,
			// One process may host a component more than once, one after the other.
			SkipNameValidation: &yes,
		},
		LeaderElection:          o.Election.Enabled,
		LeaderElectionID:        o.Election.Name,
		LeaderElectionNamespace: o.Election.Namespace,
		// Everything that writes has ended by then, and the others need not wait.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &limit,
	}
	if o.Election.Enabled {
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &o.Election.LeaseDuration, &o.Election.RenewDeadline, &o.Election.RetryPeriod
	}
	if o.Election.Enabled && o.Lock != nil {
		options.LeaderElectionResourceLockInterface = o.Lock
	}
	if o.Denied != nil {
		options.Cache.DefaultWatchErrorHandler = func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				o.Denied()
			}
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		}
	}
	if only := o.Settings.Only; only != "" {
		options.Cache.ByObject = seenBy(only)
	}
	options.HealthProbeBindAddress, options.Metrics = serve(o.Serving)
	return options
}

// seenBy is what a process that serves one cluster watches: it may see no other
// Cluster and no other Works.
func seenBy(only string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", only)},
		&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{work.ExecutionNamespace(only): {}}},
	}
}

// pingCheck is the name of the health check: the process answers.
const pingCheck = "ping"

// serve says where health and metrics are served: by one server if they have the
// same address.
func serve(s flags.Serving) (health string, metrics metricsserver.Options) {
	health, metrics = orOff(s.Health), metricsserver.Options{BindAddress: orOff(s.Metrics)}
	if health == off || health != metrics.BindAddress {
		return health, metrics
	}
	answer := http.StripPrefix("/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{pingCheck: healthz.Ping}})
	metrics.ExtraHandlers = map[string]http.Handler{"/healthz": answer, "/healthz/": answer}
	return off, metrics
}

// off is the address of a server that is not there.
const off = "0"

func orOff(address string) string {
	if address == "" {
		return off
	}
	return address
}

// standby watches what a component needs before its process leads, so that it
// takes over with full caches.
type standby struct {
	cache cache.Cache
	kinds []client.Object
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s standby) Start(ctx context.Context) error {
	for _, kind := range s.kinds {
		if _, err := s.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return nil
}
