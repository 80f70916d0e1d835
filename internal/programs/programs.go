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

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/workdeletion"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// HostOptions are what a process decides for all its components.
type HostOptions struct {
	// Election is how replicas agree on the one that works; the zero value runs
	// without.
	Election flags.Election
	// Lock is the Lease of the election as its owner sees it; nil is that of an owner
	// who is new with each Host, unless it is in a Pod; see NewLease.
	Lock resourcelock.Interface
	// Waits says that requests to the control plane wait for it by themselves while it
	// is away; otherwise those of a Host do that read.
	Waits bool
	// Denied is called when the control plane does not let the process watch
	// something, again with each try. It must return at once; nil is not told.
	Denied func()
	// Serving is where health and metrics are served; the zero value serves none.
	Serving flags.Serving
	// Resync is how often everything that is stored is looked at again; 0 is never.
	Resync time.Duration
	// Members limits the requests to each member; the zero value does not.
	Members member.Throttle
	// LocalMember leads a process that runs in a member to it; nil reaches members by
	// what their Clusters say.
	LocalMember member.Local
	// WrapMembers is put around the transport to every member; nil puts nothing
	// there. That to the control plane is wrapped by its own configuration.
	WrapMembers transport.WrapperFunc
	// SkippedNamespaces are regular expressions of namespaces that are never
	// propagated, besides those of Karmada itself; nil means kube-.*.
	SkippedNamespaces []string
	// OfferClaims is given who tells, while this process decides over templates,
	// which policy claims a new object, and nil when it ends. A nil OfferClaims
	// wants none.
	OfferClaims func(Claimant)
	// Settings are for the components; nil means the defaults.
	Settings *Settings
	// Storage is what the process knows of the storage of the control plane. Hosts that
	// run one after the other share it; nil is that of a process that starts.
	Storage *epoch.Memory
}

// Claimant tells which policy claims an object that is about to be created, if one
// does for certain.
type Claimant = detector.Claimant

// Host is what the components of one process share.
type Host struct {
	Manager manager.Manager
	Members *member.Clusters
	Rules   interpreter.Source
	// Templates reads objects of any kind.
	Templates *template.Reader
	// Reports writes what several controllers say of one Work.
	Reports *report.Works
	// Judge decides about deletions in members. It is nil in an agent.
	Judge *judge.Judge
	// Epoch says which life of its storage the control plane lives.
	Epoch *epoch.Watch
	// Renderings tells which clusters have no current Work, and why.
	Renderings *report.Renderings
	// SkippedNamespaces are never propagated.
	SkippedNamespaces reach.SkippedNamespaces
	// Settings are for single components.
	Settings Settings

	offerClaims func(Claimant)
	// standsBy says that others may lead, so that what is needed is watched before
	// this process does.
	standsBy bool
}

// NewHost makes a host that talks to the control plane by a configuration. ctx
// bounds the life of what it opens.
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
	counted, err := member.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	follow, err := followSecrets(mgr, o)
	if err != nil {
		return nil, err
	}
	members := member.NewClusters(ctx, member.Options{
		Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Follow: follow, Local: o.LocalMember, Throttle: o.Members, Wrap: o.WrapMembers, Metrics: counted,
		Delivered: deliveredBy(ctx, mgr.GetClient()),
	})
	rules := interpreter.Chain(builtin.New(builtin.Options{Now: time.Now}))
	if o.SkippedNamespaces == nil {
		o.SkippedNamespaces = []string{"kube-.*"}
	}
	skipped, err := reach.ParseSkippedNamespaces(o.SkippedNamespaces)
	if err != nil {
		return nil, err
	}
	reports := report.NewWorks(mgr.GetClient(), report.DefaultOptions())
	if err := mgr.Add(reports); err != nil {
		return nil, fmt.Errorf("adding the writer of reports: %w", err)
	}
	watch, err := addEpoch(mgr, o)
	if err != nil {
		return nil, err
	}
	decides, err := newJudge(mgr, reports, watch, o)
	if err != nil {
		return nil, err
	}
	return &Host{
		Judge: decides, Epoch: watch, Manager: mgr, Members: members, Rules: rules, Templates: template.NewReader(mgr.GetCache(), mgr.GetAPIReader()),
		Reports: reports, Renderings: report.NewRenderings(), SkippedNamespaces: skipped,
		Settings: *o.Settings, offerClaims: o.OfferClaims, standsBy: o.Election.Enabled,
	}, nil
}

// propagated says what is never propagated.
func (h *Host) propagated() reach.Propagated {
	return reach.Propagated{APIs: h.Settings.Controllers.SkippedAPIs, Namespaces: h.SkippedNamespaces}
}

// allowedOverrides is what override policies may change beyond what an object says.
func (h *Host) allowedOverrides() override.Allowed {
	return override.Allowed{Identity: h.Settings.Gates.Enabled(gates.OverrideIdentity)}
}

// statusBytes is how much of the status of an object in a cluster is reflected.
func (h *Host) statusBytes() int {
	if h.Settings.Gates.Enabled(gates.LargeStatus) {
		return work.MaxAccountBytes
	}
	return work.MaxStatusBytes
}

// newJudge makes what decides about deletions; nil in a process that serves one cluster
// only, as an agent does.
func newJudge(mgr manager.Manager, reports *report.Works, watch *epoch.Watch, o HostOptions) (*judge.Judge, error) {
	if o.Settings.Only != "" {
		return nil, nil
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a discovery client of the control plane: %w", err)
	}
	return judge.New(judge.Options{
		Karmada: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: mgr.GetCache(), API: api, Reports: reports,
		Events:   observe.NewEvents(mgr.GetEventRecorderFor(workdeletion.Name)), //nolint:staticcheck // the newer recorder writes another API
		Registry: metrics.Registry, Limits: guard.DefaultLimits(), Epoch: watch.Epoch, Now: time.Now,
	})
}

// followSecrets is what watches the Secrets of clusters, nil where none is needed.
func followSecrets(mgr manager.Manager, o HostOptions) (metadata.Interface, error) {
	if o.LocalMember != nil {
		return nil, nil
	}
	follow, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return follow, nil
}

// Component is one program of Karmada.
type Component struct {
	// Name is the program's name.
	Name string
	// Help says what it does, in one line.
	Help string
	// Needs are the kinds of Karmada without which it cannot start.
	Needs []client.Object
	// Add registers it with a host.
	Add func(*Host) error
}

// named returns the rows of the components of those names.
func named(names []string) ([]Component, error) {
	var chosen []Component
	table := Components()
	for _, name := range names {
		i := slices.IndexFunc(table, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no component %q", name)
		}
		chosen = append(chosen, table[i])
	}
	return chosen, nil
}

// Names are the names of all components.
func Names() []string {
	var names []string
	for _, component := range Components() {
		names = append(names, component.Name)
	}
	return names
}

// Add registers the named components with the host; an unknown name is an error.
func (h *Host) Add(names ...string) error {
	components, err := named(names)
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
		if !h.standsBy {
			continue
		}
		if err := h.Manager.Add(standby{h.Manager.GetCache(), component.Needs}); err != nil {
			return fmt.Errorf("adding %s: %w", component.Name, err)
		}
	}
	return nil
}

// Run is what a production program does: it waits for the control plane, a minute
// at most, and runs the named components until ctx ends. A process that loses its
// Lease ends with an error. One whose control plane is restored from a backup begins
// anew.
func Run(ctx context.Context, karmada *rest.Config, o HostOptions, names ...string) error {
	components, err := named(names)
	if err != nil {
		return err
	}
	o.Storage = &epoch.Memory{}
	lives, err := NewLives(ctx, func(ctx context.Context) (*Host, error) {
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
		return nil //nolint:nilerr // a program that is told to end while it waits ends well
	}
	if err != nil {
		return err
	}
	return lives.Run(ctx)
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
