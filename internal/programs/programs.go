// Package programs defines the row that describes a component, and the host that runs the
// components of rows.
//
// `karmada up` runs all rows of a control plane in one process, with one connection, one watch for
// each kind and one set of member caches. A production program runs one row. A component behaves
// the same in both, because both parse, validate and run the same options.
package programs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/workdeletion"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// HostOptions are the settings that all components of a process share.
type HostOptions struct {
	// Election configures leader election. The zero value disables it.
	Election flags.Election
	// Lock is the lock of the leader election. If it is nil, each Host creates a Lease lock with
	// the identity that NewLease describes.
	Lock resourcelock.Interface
	// RetriesRequests means that the transport to the control plane already waits while the control
	// plane is unavailable. If it is false, the Host makes read requests wait.
	RetriesRequests bool
	// OnWatchForbidden is called each time the control plane forbids a watch. It must return
	// immediately. nil means that no function is called.
	OnWatchForbidden func()
	// Serving contains the addresses of health and metrics. The zero value disables both.
	Serving flags.Serving
	// Resync is the time between two resyncs, which process all objects again. 0 disables resyncs.
	Resync time.Duration
	// MemberThrottle limits the requests to each member. The zero value does not limit them.
	MemberThrottle member.Throttle
	// LocalMember returns the client configuration of the member in which the process runs. If it
	// is nil, members are accessed with the connection settings of their Clusters.
	LocalMember member.LocalConfigFunc
	// WrapMemberTransport wraps the transport to every member. nil does not change the transport.
	// The rest.Config of the control plane wraps the transport to the control plane.
	WrapMemberTransport transport.WrapperFunc
	// SetClaimLookup is called with a ClaimLookup when the detector of this process starts, and
	// with nil when the detector ends. If SetClaimLookup is nil, no function is called.
	SetClaimLookup func(ClaimLookup)
	// Gates are the feature gates of the process. nil means the defaults.
	Gates *gates.Set
	// OnlyCluster is the name of the only cluster that the process serves. The process then reads
	// no other Clusters, and no Works of other clusters. Empty means that the process serves all
	// clusters.
	OnlyCluster string
	// DeletionLimits are the limits of the deletion guard. The zero value means the defaults.
	DeletionLimits guard.Limits
	// EpochMemory remembers the epoch of the storage of the control plane. Hosts that run one after
	// another share it. nil means that no epoch is remembered.
	EpochMemory *epoch.StorageRecord
}

// ClaimLookup returns the policy that claims an object that is being created. It also reports
// whether the result is certain.
type ClaimLookup = detector.ClaimLookup

// Host contains the clients, caches and settings that the components of one process share.
type Host struct {
	Manager manager.Manager
	Members *member.Clusters
	// Watches runs the watches of templates and of objects in members.
	Watches *watches.Manager
	// Interpreter interprets objects. It requires the field Interprets of the component.
	Interpreter interpreter.Source
	// Templates reads objects of any kind.
	Templates *template.Reader
	// WorkReports writes the status of Works on behalf of several controllers.
	WorkReports *loop.StatusWriter
	// Guard decides about deletions in members.
	Guard *deletionguard.Guard
	// Epoch returns the current epoch of the storage of the control plane.
	Epoch *epoch.Watcher
	// Gates are the feature gates of the process.
	Gates *gates.Set
	// SetClaimLookup is the field SetClaimLookup of HostOptions.
	SetClaimLookup func(ClaimLookup)
	// Placer lets the detector create bindings together with the clusters that the scheduler of this
	// process selects.
	Placer *loop.BindingPlacer

	// electsLeader means that another replica may be the leader. Then the caches of the required
	// kinds are filled before this process becomes the leader.
	electsLeader bool
	// rules is the Interpreter whose configuration is watched. It is nil as soon as the watch is
	// added.
	rules *interpreters.Interpreter
}

// NewHost returns a host that uses a client configuration for the control plane. The connections
// of the host are closed when ctx ends.
func NewHost(ctx context.Context, karmada *rest.Config, o HostOptions) (*Host, error) {
	ctrllog.SetLogger(klog.Background())
	if o.Gates == nil {
		o.Gates = gates.New()
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
	watchManager, err := newWatchManager(ctx, mgr)
	if err != nil {
		return nil, err
	}
	members := member.NewClusters(ctx, member.Options{
		Watches: watchManager,
		Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), SecretMetadata: secretWatcher, LocalConfig: o.LocalMember,
		Throttle: o.MemberThrottle, WrapTransport: o.WrapMemberTransport, Metrics: memberMetrics,
		Delivered: newDeliveredCounter(ctx, mgr.GetClient()),
	})
	reports := loop.NewStatusWriter(mgr.GetClient(), mgr.GetAPIReader(), loop.DefaultStatusWriterOptions())
	if err := mgr.Add(reports); err != nil {
		return nil, fmt.Errorf("adding the writer of Work statuses: %w", err)
	}
	watch, err := addEpochWatch(mgr, o)
	if err != nil {
		return nil, err
	}
	deletions, err := newDeletionGuard(mgr, reports, watch, o)
	if err != nil {
		return nil, err
	}
	rules, err := interpreters.New(interpreterOptions(o.Gates, mgr.GetAPIReader()))
	if err != nil {
		return nil, err
	}
	return &Host{
		Guard: deletions, Epoch: watch, Manager: mgr, Members: members, Watches: watchManager, Interpreter: rules, rules: rules,
		Templates: template.NewReader(watchManager, mgr.GetAPIReader()), WorkReports: reports,
		Gates: o.Gates, SetClaimLookup: o.SetClaimLookup, Placer: &loop.BindingPlacer{}, electsLeader: o.Election.Enabled,
	}, nil
}

// newWatchManager returns a manager of watches that is connected to the control plane.
func newWatchManager(ctx context.Context, mgr manager.Manager) (*watches.Manager, error) {
	config, httpClient := mgr.GetConfig(), mgr.GetHTTPClient()
	mapper, err := watches.NewMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a dynamic client of the control plane: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client of the control plane: %w", err)
	}
	watchManager := watches.NewManager(ctx)
	watchManager.Connect(watches.ControlPlane, watches.NewServer(objects, mapper, api, nil))
	return watchManager, nil
}

// newDeletionGuard returns the guard that decides about deletions in members. In an agent, which
// serves only one cluster, it follows the decisions of the control plane.
func newDeletionGuard(mgr manager.Manager, reports *loop.StatusWriter, watch *epoch.Watcher, o HostOptions) (*deletionguard.Guard, error) {
	options := deletionguard.Options{
		Karmada: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Reports: reports, ReadEpoch: watch.Epoch, Now: time.Now,
	}
	if o.OnlyCluster != "" {
		options.Events = loop.EventsFor(mgr, execution.Name, loop.EventModeChanges)
		return deletionguard.NewForAgent(options)
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a discovery client of the control plane: %w", err)
	}
	options.Discovery, options.Registry, options.Limits = api, metrics.Registry, cmp.Or(o.DeletionLimits, guard.DefaultLimits())
	options.Events = loop.EventsFor(mgr, workdeletion.Name, loop.EventModeChanges)
	return deletionguard.New(options)
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

// Add registers components with the host.
func (h *Host) Add(components ...Component) error {
	for _, component := range components {
		if component.Interprets {
			if err := h.watchRules(); err != nil {
				return fmt.Errorf("adding %s: %w", component.Name, err)
			}
		}
		if err := component.Add(h); err != nil {
			return fmt.Errorf("adding %s: %w", component.Name, err)
		}
		if !h.electsLeader {
			continue
		}
		if err := h.Manager.Add(cacheWarmer{h.Manager.GetCache(), component.allRequiredKinds()}); err != nil {
			return fmt.Errorf("adding %s: %w", component.Name, err)
		}
	}
	return nil
}

// Run is the main function of a production program. It waits for the control plane, at most
// awaitTimeout, and then runs the components until ctx ends. It returns an error if the process
// loses its Lease. If the control plane is restored from a backup, the host restarts with empty
// caches.
func Run(ctx context.Context, karmada *rest.Config, o HostOptions, components ...Component) error {
	o.EpochMemory = &epoch.StorageRecord{}
	lives, err := NewRestartingHost(ctx, func(ctx context.Context) (*Host, error) {
		if err := await(ctx, karmada, o.Election, components); err != nil {
			return nil, err
		}
		host, err := NewHost(ctx, karmada, o)
		if err != nil {
			return nil, err
		}
		return host, host.Add(components...)
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
