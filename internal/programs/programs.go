// Package programs answers "which components exist, and what does a process share among the
// components that it runs?": one table of components, and the host that runs a selection of its
// rows.
//
// `karmada up` runs all rows in one host, with one connection, one watch for each kind and one
// set of member caches. A production program runs one row. A component does not depend on which
// of the two runs it.
package programs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/statuswriter"
	"karmada.io/karmada/internal/access/telemetry"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/workdeletion"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// HostOptions are the settings that all components of a process share.
type HostOptions struct {
	// Election configures leader election. The zero value disables it.
	Election flags.Election
	// Lock is the lock of the election. If it is nil, each Host creates a Lease lock; see
	// NewLease for its identity.
	Lock resourcelock.Interface
	// RetriesRequests means that the transport to the control plane already waits while the control plane
	// is unavailable. If it is false, the Host makes read requests wait.
	RetriesRequests bool
	// OnWatchForbidden is called each time the control plane forbids a watch. It must return at once. It
	// may be nil.
	OnWatchForbidden func()
	// Serving has the addresses of health and metrics. The zero value serves neither.
	Serving flags.Serving
	// Resync is the period of the resync of all objects. 0 disables it.
	Resync time.Duration
	// MemberThrottle limits the requests to each member. The zero value does not limit them.
	MemberThrottle member.Throttle
	// LocalMember is the access of a process that runs inside a member to that member. If it is
	// nil, members are accessed through the connection settings of their Clusters.
	LocalMember member.LocalConfigFunc
	// WrapMemberTransport wraps the transport to every member. It may be nil. The transport to the
	// control plane is wrapped by its rest.Config.
	WrapMemberTransport transport.WrapperFunc
	// SkippedNamespaces are regular expressions of namespaces that are never propagated, in
	// addition to the namespaces of Karmada. nil means kube-.*.
	SkippedNamespaces []string
	// SetClaimLookup is called with a Claimant when the detector of this process starts, and with
	// nil when it ends. It may be nil.
	SetClaimLookup func(ClaimLookup)
	// Settings are the settings of the components. nil means the defaults.
	Settings *Settings
	// EpochMemory remembers the epoch of the storage of the control plane. Hosts that run one after
	// another share it. nil starts without memory.
	EpochMemory *epoch.StorageRecord
}

// ClaimLookup returns the policy that claims an object about to be created, if the result is
// certain.
type ClaimLookup = detector.ClaimLookup

// Host contains the clients, caches and settings that the components of one process share.
type Host struct {
	Manager     manager.Manager
	Members     *member.Clusters
	Interpreter interpreter.Source
	// Templates reads objects of any kind.
	Templates *template.Reader
	// WorkReports writes the status of Works on behalf of several controllers.
	WorkReports *statuswriter.Writer
	// Judge permits or holds deletions in members. It is nil in an agent.
	Judge *deletionguard.Guard
	// Epoch returns the current epoch of the storage of the control plane.
	Epoch *epoch.Watcher
	// Renderings returns the clusters without a current Work, and the reason.
	Renderings *statuswriter.RenderFailures
	// SkippedNamespaces are never propagated.
	SkippedNamespaces tenancy.SkippedNamespaces
	// Settings are the settings of the components.
	Settings Settings

	offerClaimant func(ClaimLookup)
	// electsLeader means that another replica may lead. The caches of the required kinds are
	// then filled before this process leads.
	electsLeader bool
}

// NewHost returns a host that uses a client configuration for the control plane. The
// connections of the host end with ctx.
func NewHost(ctx context.Context, karmada *rest.Config, o HostOptions) (*Host, error) {
	ctrllog.SetLogger(klog.Background())
	if o.Settings == nil {
		settings := DefaultSettings(gates.New())
		o.Settings = &settings
	}
	mgr, err := newManager(karmada, o)
	if err != nil {
		return nil, err
	}
	memberMetrics, err := member.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	secretWatcher, err := newSecretWatcher(mgr, o)
	if err != nil {
		return nil, err
	}
	members := member.NewClusters(ctx, member.Options{
		Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), SecretMetadata: secretWatcher, LocalConfig: o.LocalMember, Throttle: o.MemberThrottle, WrapTransport: o.WrapMemberTransport, Metrics: memberMetrics,
		Delivered: newDeliveredCounter(ctx, mgr.GetClient()),
	})
	rules := interpreter.New(builtin.New(builtin.Options{Now: time.Now}))
	if o.SkippedNamespaces == nil {
		o.SkippedNamespaces = []string{"kube-.*"}
	}
	skipped, err := tenancy.ParseSkippedNamespaces(o.SkippedNamespaces)
	if err != nil {
		return nil, err
	}
	reports := statuswriter.NewWriter(mgr.GetClient(), statuswriter.DefaultOptions())
	if err := mgr.Add(reports); err != nil {
		return nil, fmt.Errorf("adding the writer of Work statuses: %w", err)
	}
	watch, err := addEpochWatch(mgr, o)
	if err != nil {
		return nil, err
	}
	deletionJudge, err := newJudge(mgr, reports, watch, o)
	if err != nil {
		return nil, err
	}
	return &Host{
		Judge: deletionJudge, Epoch: watch, Manager: mgr, Members: members, Interpreter: rules, Templates: template.NewReader(mgr.GetCache(), mgr.GetAPIReader()),
		WorkReports: reports, Renderings: statuswriter.NewRenderFailures(), SkippedNamespaces: skipped,
		Settings: *o.Settings, offerClaimant: o.SetClaimLookup, electsLeader: o.Election.Enabled,
	}, nil
}

// propagationFilter excludes the APIs and namespaces that are never propagated.
func (h *Host) propagationFilter() tenancy.PropagationRules {
	return tenancy.PropagationRules{APIs: h.Settings.Controllers.SkippedAPIs, Namespaces: h.SkippedNamespaces}
}

// allowedOverrides returns which identity fields override policies may change.
func (h *Host) allowedOverrides() override.Options {
	return override.Options{AllowIdentityChange: h.Settings.Gates.Enabled(gates.OverrideIdentity)}
}

// statusBytes is the maximum size of a reflected status in bytes.
func (h *Host) statusBytes() int {
	if h.Settings.Gates.Enabled(gates.LargeStatus) {
		return work.MaxAggregationBytes
	}
	return work.MaxStatusBytes
}

// newJudge returns the judge of deletions. It returns nil in an agent, which serves one cluster
// only.
func newJudge(mgr manager.Manager, reports *statuswriter.Writer, watch *epoch.Watcher, o HostOptions) (*deletionguard.Guard, error) {
	if o.Settings.OnlyCluster != "" {
		return nil, nil
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a discovery client of the control plane: %w", err)
	}
	return deletionguard.New(deletionguard.Options{
		Karmada: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Cache: mgr.GetCache(), Discovery: api, Reports: reports,
		Events:   telemetry.NewEvents(mgr.GetEventRecorderFor(workdeletion.Name)), //nolint:staticcheck // the newer recorder writes another API
		Registry: metrics.Registry, Limits: guard.DefaultLimits(), ReadEpoch: watch.Epoch, Now: time.Now,
	})
}

// newSecretWatcher returns the client that watches the Secrets of clusters. It returns nil if
// the process reads no such Secrets.
func newSecretWatcher(mgr manager.Manager, o HostOptions) (metadata.Interface, error) {
	if o.LocalMember != nil {
		return nil, nil
	}
	secrets, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return secrets, nil
}

// Component is one program of Karmada.
type Component struct {
	// Name is the program's name.
	Name string
	// Help describes the component in one line.
	Help string
	// RequiredKinds are the kinds of Karmada that the component requires to start.
	RequiredKinds []client.Object
	// Add registers the component with a host.
	Add func(*Host) error
}

// componentsByName returns the rows of the named components.
func componentsByName(names []string) ([]Component, error) {
	var chosen []Component
	table := Components()
	for _, name := range names {
		i := slices.IndexFunc(table, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown component %q", name)
		}
		chosen = append(chosen, table[i])
	}
	return chosen, nil
}

// ComponentNames returns the names of all components.
func ComponentNames() []string {
	var names []string
	for _, component := range Components() {
		names = append(names, component.Name)
	}
	return names
}

// Add registers the named components with the host; an unknown name is an error.
func (h *Host) Add(names ...string) error {
	components, err := componentsByName(names)
	if err != nil {
		return err
	}
	return h.AddComponents(components...)
}

// AddComponents registers components with the host.
func (h *Host) AddComponents(components ...Component) error {
	for _, component := range components {
		if err := component.Add(h); err != nil {
			return fmt.Errorf("adding %s: %w", component.Name, err)
		}
		if !h.electsLeader {
			continue
		}
		if err := h.Manager.Add(cacheWarmer{h.Manager.GetCache(), component.RequiredKinds}); err != nil {
			return fmt.Errorf("adding %s: %w", component.Name, err)
		}
	}
	return nil
}

// Run is the main function of a production program. It waits for the control plane, at most
// awaitTimeout, and runs the named components until ctx ends. A process that loses its Lease
// ends with an error. The host restarts with empty caches if the control plane is restored from
// a backup.
func Run(ctx context.Context, karmada *rest.Config, o HostOptions, names ...string) error {
	components, err := componentsByName(names)
	if err != nil {
		return err
	}
	o.EpochMemory = &epoch.StorageRecord{}
	lives, err := NewRestartingHost(ctx, func(ctx context.Context) (*Host, error) {
		if err := await(ctx, karmada, o.Election, components); err != nil {
			return nil, err
		}
		host, err := NewHost(ctx, karmada, o)
		if err != nil {
			return nil, err
		}
		return host, host.AddComponents(components...)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a program that is stopped while it waits ends without an error
	}
	if err != nil {
		return err
	}
	return lives.Run(ctx)
}

// Run runs all added components until ctx ends.
func (h *Host) Run(ctx context.Context) error { return h.Manager.Start(ctx) }

// Ready waits until the shared caches are synced.
func (h *Host) Ready(ctx context.Context) error {
	if !h.Manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("filling caches: %w", ctx.Err())
	}
	return nil
}
