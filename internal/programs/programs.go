// Package programs answers "which components are there, and what does a process
// share among those it runs?": one table of components, and the host that runs
// any choice of its rows.
//
// `karmada up` runs all rows in one host, with one connection, one watch for each
// kind and one set of member caches; a production program runs one row. A
// component cannot tell which.
package programs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/policy"
)

// HostOptions are what a process decides for all its components.
type HostOptions struct {
	// LeaderElection is the name of the Lease that replicas compete for; empty
	// runs without.
	LeaderElection string
	// MetricsAddress is where metrics are served; "0" or empty serves none.
	MetricsAddress string
	// HealthAddress is where /healthz is served; "0" or empty serves none.
	HealthAddress string
	// Members limits the requests to each member; the zero value does not.
	Members member.Throttle
	// SkippedNamespaces are regular expressions of namespaces that are never
	// propagated, besides those of Karmada itself; nil means kube-.*.
	SkippedNamespaces []string
}

// Host is what the components of one process share.
type Host struct {
	Manager manager.Manager
	Members *member.Clusters
	Rules   interpreter.Source
	// Reports writes what several controllers say of one Work.
	Reports *report.Works
	// Renderings tells which clusters have no current Work, and why.
	Renderings *report.Renderings
	// SkippedNamespaces are never propagated.
	SkippedNamespaces policy.SkippedNamespaces
}

// shutdownLimit is how long the components of a process may take to end.
const shutdownLimit = 5 * time.Second

// NewHost makes a host that talks to the control plane by a configuration. ctx
// bounds the life of what it opens.
func NewHost(ctx context.Context, karmada *rest.Config, o HostOptions) (*Host, error) {
	ctrllog.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes types: %w", err)
	}
	if err := api.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Karmada types: %w", err)
	}
	mgr, err := manager.New(karmada, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	members := member.NewClusters(ctx, member.Options{Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Throttle: o.Members})
	rules := interpreter.Chain(builtin.New(builtin.Options{Now: time.Now}))
	if o.SkippedNamespaces == nil {
		o.SkippedNamespaces = []string{"kube-.*"}
	}
	skipped, err := policy.ParseSkippedNamespaces(o.SkippedNamespaces)
	if err != nil {
		return nil, err
	}
	reports := report.NewWorks(mgr.GetClient(), report.DefaultOptions())
	if err := mgr.Add(reports); err != nil {
		return nil, fmt.Errorf("adding the writer of reports: %w", err)
	}
	return &Host{
		Manager: mgr, Members: members, Rules: rules, Reports: reports, Renderings: report.NewRenderings(), SkippedNamespaces: skipped,
	}, nil
}

func managerOptions(scheme *runtime.Scheme, o HostOptions) manager.Options {
	never, limit, yes := time.Duration(0), shutdownLimit, true
	return manager.Options{
		Scheme: scheme,
		Cache:  cache.Options{SyncPeriod: &never, DefaultTransform: cache.TransformStripManagedFields()},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{
			RecoverPanic: &yes, UsePriorityQueue: &yes,
			// One process may host a component more than once, one after the other.
			SkipNameValidation: &yes,
		},
		Metrics:                 metricsserver.Options{BindAddress: orOff(o.MetricsAddress)},
		HealthProbeBindAddress:  orOff(o.HealthAddress),
		LeaderElection:          o.LeaderElection != "",
		LeaderElectionID:        o.LeaderElection,
		LeaderElectionNamespace: clusterv1alpha1.NamespaceKarmadaSystem,
		GracefulShutdownTimeout: &limit,
	}
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// Component is one program of Karmada.
type Component struct {
	// Name is the program's name.
	Name string
	// Help says what it does, in one line.
	Help string
	// Add registers it with a host.
	Add func(*Host) error
}

// Add registers the named components with the host; an unknown name is an error.
func (h *Host) Add(names ...string) error {
	components := Components()
	for _, name := range names {
		i := slices.IndexFunc(components, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no component %q", name)
		}
		if err := components[i].Add(h); err != nil {
			return fmt.Errorf("adding %s: %w", name, err)
		}
	}
	return nil
}

// Run runs everything added until ctx ends.
func (h *Host) Run(ctx context.Context) error { return h.Manager.Start(ctx) }

// Ready waits until the shared caches hold what is stored.
func (h *Host) Ready(ctx context.Context) error {
	if !h.Manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("filling caches: %w", ctx.Err())
	}
	return nil
}
