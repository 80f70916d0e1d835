// Package agent defines the flags of karmada-agent and runs it.
//
// An agent connects to two API servers: the API server of its cluster, where it has all permissions, and the
// control plane's API server, where it may read its own Cluster and its own Works. It registers the cluster
// when it starts. Then it runs the same controllers as push mode, but only for this cluster.
//
// Invariants: while one of the API servers is unavailable, the agent waits and logs the reason. It
// never writes objects for a Cluster that belongs to another cluster. A running agent does not
// create its Cluster again after an administrator deleted the Cluster.
package agent

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/controllers/clusterlease"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/execution"
	domain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration/enroll"
)

// New returns the component of the agent. It sets neither Add nor Server, because an agent always
// runs as a separate program.
func New(*gates.Set) programs.Component {
	return programs.Component{
		Name: programs.Agent, Help: "registers the cluster that it runs in with a control plane, and applies the Works of the control plane to it",
		RequiredKinds: requiredKinds(), Interprets: true,
		Metrics: func(ctx context.Context) ([]programs.Metric, error) {
			set := gates.New()
			return Default(set).Component().HostedMetrics(ctx, programs.HostOptions{Gates: set, OnlyCluster: "member"})
		},
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return Default(set) },
	}
}

// requiredKinds are the kinds of the control plane that the agent requires to start.
func requiredKinds() []client.Object {
	return []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}}
}

// Options are the parsed flags of the agent.
type Options struct {
	// Cluster describes the Cluster to register. Run sets the client configurations, and the
	// accounts that ReportSecrets selects.
	Cluster enroll.Enrollment
	// ReportSecrets are the names of the credentials that the agent reports to the control
	// plane.
	ReportSecrets []string
	// Kubeconfig and Context select the connection to the control plane.
	Kubeconfig, Context string
	// Rate limits the requests to the control plane. MemberRate limits the requests to the cluster.
	Rate, MemberRate flags.Rate
	// Member configures the connection to the cluster.
	Member flags.Connection

	Election flags.Election
	Serving  flags.Serving
	// Resync is the time between two resyncs, which process all objects again. 0 disables resyncs.
	Resync time.Duration

	programs.ControllerOptions
	// Workers is the number of Works that are processed in parallel.
	Workers int
	// ClusterStatus, Lease and Rotation are the options of the controllers with these names.
	ClusterStatus clusterstatus.Options
	Lease         clusterlease.Options
	Rotation      certrotation.Options

	gates   *gates.Set
	ignored *programs.IgnoredFlags
	flags   *pflag.FlagSet
}

// Default returns the default options.
func Default(set *gates.Set) *Options {
	o := &Options{
		Cluster:       enroll.Enrollment{ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster},
		ReportSecrets: []string{kubeCredentials, kubeImpersonator},
		Rate:          flags.DefaultRate(), MemberRate: flags.DefaultRate(), Member: flags.DefaultConnection(),
		Election: flags.DefaultElection(""), Serving: flags.DefaultServing(":10357"),
		ControllerOptions: programs.DefaultControllerOptions(), Workers: execution.DefaultOptions().Workers,
		ClusterStatus: clusterstatus.DefaultOptions(), Lease: clusterlease.DefaultOptions(), Rotation: certrotation.DefaultOptions(),
		gates: set, ignored: programs.NewIgnoredFlags(
			programs.IgnoredFlag{Name: "concurrent-cluster-syncs", Default: 5,
				Help: "Number of clusters that are reconciled in parallel. An agent serves one cluster."}),
	}
	o.ClusterStatus.Mode = clusterv1alpha1.Pull
	return o
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

// runUntilDone registers and serves the cluster until ctx ends. Each time the target of the
// kubeconfig changes, it starts a new agent.
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

// restartAgent creates a new agent after the target of the kubeconfig changed. If the kubeconfig
// changed again and is invalid, restartAgent waits until it is valid. It returns nil when ctx
// ends.
func (o *Options) restartAgent(ctx context.Context, before *agent) *agent {
	// Close the connections to the old target.
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
	klog.FromContext(ctx).Info("Registered", "cluster", registered.Name, "id", registered.Spec.ID, "deleting",
		registered.DeletionTimestamp != nil)
	return a.serveCluster(ctx, registered)
}

// hostOptions returns the options of the programs.Host that runs the controllers.
func (o *Options) hostOptions() programs.HostOptions {
	host := programs.HostOptions{Gates: o.gates, OnlyCluster: o.Cluster.Name, Election: o.Election, Resync: o.Resync,
		EpochMemory: &epoch.StorageRecord{}}
	host.Election.Name = domain.LeaderLeasePrefix + o.Cluster.Name
	if qps, burst := o.MemberRate.Limit(); qps > 0 {
		host.MemberThrottle = member.Throttle{QPS: qps, Burst: burst}
	}
	return host
}

// ineffectiveFlags returns the flags that the user gave and that have no effect.
func (o *Options) ineffectiveFlags() []string {
	return o.IneffectiveFlags(o.table(), o.gates)
}
