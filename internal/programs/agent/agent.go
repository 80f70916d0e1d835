// Package agent answers "what can be told to karmada-agent, and how does it
// live?".
//
// An agent has two sides: its cluster, which it may do everything in, and the
// control plane, where it may see its own Cluster and its own Works. It registers
// at its start and serves its cluster from then on with the controllers that serve
// all others.
//
// Invariants: what cannot be reached is waited for, with reasons told. Nothing is
// written for a Cluster that is another cluster, and a Cluster that an
// administrator deletes is not made again by a running agent.
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
		Help: "registers the cluster that it runs in with a control plane, and does there what the control plane wants",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are what the program is told.
type Options struct {
	// Cluster describes the Cluster to be registered. Its sides are set by Run.
	Cluster enroll.Agent
	// ReportSecrets are the names of what the control plane is told of the cluster.
	ReportSecrets []string
	// Kubeconfig and Context lead to the control plane.
	Kubeconfig, Context string
	// Rate limits the requests to the control plane, Members those to the cluster.
	Rate, Members flags.Rate
	// Member leads to the cluster.
	Member flags.Connection

	Election flags.Election
	Serving  flags.Serving
	Backoff  flags.Backoff
	// Resync is how often everything that is stored is looked at again; 0 is never.
	Resync time.Duration
	// Controllers are those to run.
	Controllers []string
	// Settings are what controllers are told.
	Settings programs.Settings

	flags *pflag.FlagSet
}

// Default are the options without flags.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	settings.Mode = clusterv1alpha1.Pull
	return &Options{
		Cluster:       enroll.Agent{ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster},
		ReportSecrets: []string{kubeCredentials, kubeImpersonator},
		Rate:          flags.DefaultRate(), Members: flags.DefaultRate(), Member: flags.DefaultConnection(),
		Election: flags.DefaultElection(""), Serving: flags.DefaultServing(":10357"), Backoff: flags.DefaultBackoff(),
		Controllers: settings.Controllers.Selected, Settings: settings,
	}
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	flags.TellIneffective(ctx, programs.Agent, o.ineffective())
	preferPrompt()
	stopShrinking := preferSmall(ctx)
	defer stopShrinking()
	status, err := serve(ctx, o.Serving)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- status(ctx)
	}()
	err = o.live(ctx)
	stop()
	if failed := <-ended; failed != nil {
		return failed
	}
	return err
}

// live registers the cluster and serves it until ctx ends, by whatever way its
// kubeconfig tells.
func (o *Options) live(ctx context.Context) error {
	a, err := o.agent()
	if err != nil {
		return err
	}
	for {
		err := a.live(ctx)
		select {
		case <-a.karmada.moved:
		default:
			return err
		}
		if a = o.again(ctx, a); a == nil {
			return nil
		}
	}
}

// again makes the agent anew after its kubeconfig has changed. One that has changed
// once more, and cannot be read, is waited for; nil is the end of ctx.
func (o *Options) again(ctx context.Context, before *agent) *agent {
	// Nobody is to go on by the way that is no more.
	before.karmada.renewed()
	for {
		a, err := o.agent()
		if err == nil {
			a.lease = before.lease
			return a
		}
		klog.FromContext(ctx).Error(err, "Waiting for a kubeconfig of the control plane")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookInterval):
		}
	}
}

// live registers the cluster and serves it until ctx ends, or its kubeconfig leads
// elsewhere.
func (a *agent) live(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		a.karmada.watch(ctx)
		end()
	}()
	defer func() { end(); <-watching }()
	registered, err := a.register(ctx)
	if err != nil || registered == nil {
		return err
	}
	klog.FromContext(ctx).Info("Registered", "cluster", registered.Name, "id", registered.Spec.ID, "deleting", registered.DeletionTimestamp != nil)
	return a.serve(ctx, registered)
}

// host is what the options mean for the process.
func (o *Options) host() programs.HostOptions {
	settings := o.Settings
	of := &settings.Controllers
	settings.Only, of.Selected = o.Cluster.Name, o.Controllers
	of.Backoff, of.MemberBackoff = o.Backoff.Of(of.Backoff, o.flags), o.Backoff.Of(of.MemberBackoff, o.flags)
	host := programs.HostOptions{Election: o.Election, Resync: o.Resync, Settings: &settings, Storage: &epoch.Memory{}}
	host.Election.Name = domain.LeaderLeasePrefix + o.Cluster.Name
	if qps, burst := o.Members.Limit(); qps > 0 {
		host.Members = member.Throttle{QPS: qps, Burst: burst}
	}
	return host
}

// ineffective are the flags that were given for nothing.
func (o *Options) ineffective() []string {
	given := flags.Given(o.flags, "concurrent-cluster-syncs", flags.BackoffQPS, flags.BackoffBucketSize)
	for _, controller := range programs.AbsentOf(programs.AgentControllers(), o.Controllers) {
		given = append(given, "--controllers="+controller)
	}
	return append(given, flags.GivenGates(o.Settings.Gates, gates.MultiClusterService)...)
}
