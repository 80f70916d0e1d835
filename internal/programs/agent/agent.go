// Package agent answers "which flags does karmada-agent have, and how does it run?".
//
// An agent connects to two API servers: that of its cluster, where it has all rights, and that
// of the control plane, where it may read its own Cluster and its own Works. It registers the
// cluster when it starts, and then runs the same controllers as push mode for this single
// cluster.
//
// Invariants: while one of the API servers is unavailable, the agent waits and logs the reason.
// It never writes for a Cluster that belongs to another cluster. A running agent does not
// create the Cluster again after an administrator deleted it.
package agent

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration/enroll"
)

// Program is the executable.
func Program() command.Program {
	return command.Program{
		Name: programs.Agent,
		Help: "registers the cluster that it runs in with a control plane, and applies the Works of the control plane to it",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are the parsed flags of the agent.
type Options struct {
	// Cluster describes the Cluster to register. Run sets its client configurations.
	Cluster enroll.Enrollment
	// ReportSecrets are the names of the credentials that the agent reports to the control
	// plane.
	ReportSecrets []string
	// Kubeconfig and Context select the connection to the control plane.
	Kubeconfig, Context string
	// Rate limits the requests to the control plane. Members limits the requests to the
	// cluster.
	Rate, MemberRate flags.Rate
	// Member configures the connection to the cluster.
	Member flags.Connection

	Election flags.Election
	Serving  flags.Serving
	Backoff  flags.Backoff
	// Resync is the period of the resync of all objects. 0 disables it.
	Resync time.Duration
	// Controllers selects the controllers to run, in the format of --controllers.
	Controllers []string
	// Settings are the settings of the controllers.
	Settings programs.Settings

	flags *pflag.FlagSet
}

// Default returns the default options.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	settings.SyncMode = clusterv1alpha1.Pull
	return &Options{
		Cluster:       enroll.Enrollment{ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster},
		ReportSecrets: []string{kubeCredentials, kubeImpersonator},
		Rate:          flags.DefaultRate(), MemberRate: flags.DefaultRate(), Member: flags.DefaultConnection(),
		Election: flags.DefaultElection(""), Serving: flags.DefaultServing(":10357"), Backoff: flags.DefaultBackoff(),
		Controllers: settings.Controllers.Selected, Settings: settings,
	}
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	flags.LogIneffective(ctx, programs.Agent, o.ineffectiveFlags())
	setHTTP2PingDefaults()
	stopShrinking := reduceMemory(ctx)
	defer stopShrinking()
	serveStatus, err := listenStatus(ctx, o.Serving)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- serveStatus(ctx)
	}()
	err = o.runUntilDone(ctx)
	stop()
	if statusErr := <-ended; statusErr != nil {
		return statusErr
	}
	return err
}

// runUntilDone registers and serves the cluster until ctx ends. It starts a new agent each time
// the target of the kubeconfig changes.
func (o *Options) runUntilDone(ctx context.Context) error {
	a, err := o.newAgent()
	if err != nil {
		return err
	}
	for {
		err := a.run(ctx)
		select {
		case <-a.karmada.targetChanged:
		default:
			return err
		}
		if a = o.restartAgent(ctx, a); a == nil {
			return nil
		}
	}
}

// restartAgent creates a new agent after the target of the kubeconfig changed. If the file
// changed again and is invalid, restartAgent waits until it is valid. It returns nil when ctx
// ends.
func (o *Options) restartAgent(ctx context.Context, before *agent) *agent {
	// Connections to the old target are closed.
	before.karmada.onChange()
	for {
		a, err := o.newAgent()
		if err == nil {
			a.lease = before.lease
			return a
		}
		klog.FromContext(ctx).Error(err, "Waiting for a valid kubeconfig of the control plane")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reloadInterval):
		}
	}
}

// run registers and serves the cluster until ctx ends or the target of the kubeconfig changes.
func (a *agent) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	watchEnded := make(chan struct{})
	go func() {
		defer close(watchEnded)
		a.karmada.watchKubeconfig(ctx)
		cancel()
	}()
	defer func() { cancel(); <-watchEnded }()
	registered, err := a.register(ctx)
	if err != nil || registered == nil {
		return err
	}
	klog.FromContext(ctx).Info("Registered", "cluster", registered.Name, "id", registered.Spec.ID, "deleting", registered.DeletionTimestamp != nil)
	return a.serveCluster(ctx, registered)
}

// hostOptions converts the options to those of the host.
func (o *Options) hostOptions() programs.HostOptions {
	settings := o.Settings
	controllers := &settings.Controllers
	settings.OnlyCluster, controllers.Selected = o.Cluster.Name, o.Controllers
	controllers.Backoff, controllers.MemberBackoff = o.Backoff.ForQueue(controllers.Backoff, o.flags), o.Backoff.ForQueue(controllers.MemberBackoff, o.flags)
	host := programs.HostOptions{Election: o.Election, Resync: o.Resync, Settings: &settings, EpochMemory: &epoch.StorageRecord{}}
	host.Election.Name = domain.LeaderLeasePrefix + o.Cluster.Name
	if qps, burst := o.MemberRate.Limit(); qps > 0 {
		host.MemberThrottle = member.Throttle{QPS: qps, Burst: burst}
	}
	return host
}

// ineffectiveFlags returns the given flags that have no effect.
func (o *Options) ineffectiveFlags() []string {
	given := flags.GivenFlags(o.flags, "concurrent-cluster-syncs", flags.BackoffQPS, flags.BackoffBucketSize)
	for _, controller := range programs.UnimplementedIn(programs.AgentControllers(), o.Controllers) {
		given = append(given, "--controllers="+controller)
	}
	return append(given, flags.GivenGates(o.Settings.Gates, gates.MultiClusterService)...)
}
