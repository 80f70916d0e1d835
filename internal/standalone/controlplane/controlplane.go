// Package controlplane starts the parts of a Karmada control plane in order. The parts are an
// API server with Karmada's admission plugin, the API server of the Cluster API, the Kubernetes
// controllers that Karmada needs, and the components of Karmada. All of them run in one process.
package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zapcore"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/api/crds"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/servers/search"
	"karmada.io/karmada/internal/standalone"
)

// APIServer is the API server's name. It is also its key in Options.Ports.
const APIServer = "karmada-apiserver"

// availableTimeout limits how long a server of a component may take to be ready, and how long its API
// may be unavailable.
const availableTimeout = 2 * time.Minute

// Options configure a control plane.
type Options struct {
	// Dir is the directory of all data of the control plane.
	Dir string
	// BindAddress is the address on which the API server listens. Empty means loopback.
	BindAddress string
	// Ports are the ports of the servers by name: APIServer, and the components with a server. A
	// missing port or 0 selects a free port.
	Ports map[string]int
	// CertificateLifetime is the validity of the certificates. 0 means one year. The control plane
	// renews the certificates itself.
	CertificateLifetime time.Duration
	// StartOverAdvice is the advice for a user who lost the encryption key; see standalone.Options.
	StartOverAdvice string
	// Fsync makes etcd survive a crash of the machine.
	Fsync bool
	// Components are the names of the components to run; see components.SelectableNames.
	Components []string
	// Gates are the feature gates. nil means that another program, which has its own gates, runs
	// the components. Then the components in this process use the default gates, and admission does
	// not warn about disabled gates.
	Gates *gates.Set
	// ExtraConfig are the flags of the components; see components.Configure.
	ExtraConfig []string
	// DefaultConfig are flags of the components for which ExtraConfig has no value.
	DefaultConfig []string
	// AuditLog is the path of the audit log of the API server. Empty means no audit log.
	AuditLog string
	// AuditPolicy is the audit policy; see standalone.Options.
	AuditPolicy string
	// Log receives etcd's warnings.
	Log zapcore.WriteSyncer
	// Step runs each step of the start, and may for example print the name of the step. nil runs
	// the steps without output.
	Step func(name string, run func() error) error
}

// LocalMembersConfig returns flags for Options.DefaultConfig that let the agents of members on this
// machine set loopback addresses.
func LocalMembersConfig() []string {
	var config []string
	for _, component := range components.NamesWithFlag(agent.AllowedCIDRsFlag) {
		config = append(config, component+"."+agent.AllowedCIDRsFlag+"=127.0.0.0/8,::1/128")
	}
	return config
}

// ControlPlane is a running control plane in this process.
type ControlPlane struct {
	*standalone.Cluster
	options       Options
	configuration *components.Configuration
	claims        policyClaims
}

// Start starts etcd, API servers, controllers and components, each as soon as its
// dependencies are ready. The control plane runs until Stop is called or ctx ends.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if o.Step == nil {
		o.Step = func(_ string, run func() error) error { return run() }
	}
	configuration, err := components.ConfigureWithDefaults(o.Gates, o.DefaultConfig, o.ExtraConfig)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{options: o, configuration: configuration}
	defer func() {
		if err != nil && c.Cluster != nil {
			c.Stop()
		}
	}()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"etcd and " + APIServer, c.startCluster},
		{"CRDs, roles and " + programs.AggregatedAPIServer, c.install},
		{"controllers and components", c.startComponents},
	} {
		if err := o.Step(step.name, func() error { return step.run(ctx) }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *ControlPlane) startCluster(ctx context.Context) error {
	var err error
	c.Cluster, err = standalone.Start(ctx, standalone.Options{
		Name: APIServer, CommonName: "karmada", Dir: c.options.Dir, BindAddress: c.options.BindAddress, Port: c.options.Ports[APIServer],
		StartOverAdvice: c.options.StartOverAdvice, Fsync: c.options.Fsync, CertificateLifetime: c.options.CertificateLifetime,
		AuditLog: c.options.AuditLog, AuditPolicy: c.options.AuditPolicy, Log: c.options.Log,
		ServingNames: []string{aggregated.ServingName, search.ServingName},
		Admission:    []standalone.AdmissionPlugin{{Name: admission.PluginName, Register: c.registerAdmission}},
		// Resource templates are stored in the control plane, but do not run there. So admission
		// must not require objects that only clusters with nodes and service accounts have.
		APIServerFlags: []string{
			"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
			"--watch-cache-sizes=" + watchCacheSizes(),
		},
	})
	return err
}

// watchCacheSizes returns the flag value that disables the watch caches of bindings and Works. An
// API server has one watch cache for each version of a resource. Each cache would keep all objects,
// and the caches of old versions would convert each change, although no client watches these
// versions. The watch of the current version reads from etcd at the same cost.
func watchCacheSizes() string {
	var sizes []string
	for _, resource := range []string{"resourcebindings", "clusterresourcebindings", "works"} {
		sizes = append(sizes, workv1alpha2.Resource(resource).String()+"#0")
	}
	return strings.Join(sizes, ",")
}

// install creates the objects that the components need in the API server, and starts the other
// servers.
func (c *ControlPlane) install(ctx context.Context) error {
	karmada := c.InProcessConfig()
	servers, err := c.startServers(ctx)
	if err != nil {
		return err
	}
	namespaces, objects, err := install.ControlPlaneObjects(
		rendering.Installation{Release: rendering.DefaultRelease, Namespace: clusterv1alpha1.NamespaceKarmadaSystem},
		rendering.ControlPlane{Server: c.Server(), CA: c.CA().PEM(), APIServers: servers.addresses},
	)
	if err != nil {
		return err
	}
	if err := install.DeleteAPIServices(ctx, karmada, servers.absentAPIServices...); err != nil {
		return err
	}
	for _, group := range [][]client.Object{namespaces, objects} {
		if _, err := install.Apply(ctx, karmada, group...); err != nil {
			return err
		}
	}
	conversion := install.Conversion{
		URL:      fmt.Sprintf("https://%s:%d%s", standalone.Loopback, servers.addresses[programs.Webhook].Port, crds.ConversionPath),
		CABundle: c.CA().PEM(),
	}
	if _, err := install.ApplyCRDs(ctx, karmada, nil, conversion); err != nil {
		return err
	}
	return install.AwaitAPIServices(ctx, karmada, availableTimeout, servers.apiServices...)
}

// startComponents runs the Kubernetes controllers that a control plane needs, and the
// components of Karmada.
func (c *ControlPlane) startComponents(ctx context.Context) error {
	if err := c.StartControllers(ctx, standalone.KarmadaControllers...); err != nil {
		return err
	}
	if len(c.configuration.Hosted(c.options.Components)) == 0 {
		return nil
	}
	options := c.configuration.HostOptions()
	options.SetClaimLookup, options.EpochMemory = c.claims.setLookup, &epoch.StorageRecord{}
	c.configuration.LogIneffectiveFlags(ctx, c.options.Components)
	lives, err := programs.NewRestartingHost(ctx, func(ctx context.Context) (*programs.Host, error) {
		host, err := programs.NewHost(ctx, c.InProcessConfig(), options)
		if err != nil {
			return nil, err
		}
		return host, host.Add(c.configuration.Hosted(c.options.Components)...)
	})
	if err != nil {
		return err
	}
	c.Run(ctx, "components", lives.Run)
	return lives.Ready(ctx)
}

func (c *ControlPlane) registerAdmission(plugins *apiserveradmission.Plugins) {
	reviewer := c.newReviewer()
	reviewer.Claim, reviewer.IsOnlyAdmission = c.claims.lookup, true
	admission.Register(plugins, reviewer)
}

// newReviewer returns the admission rules of this process. The rules need no webhook server.
func (c *ControlPlane) newReviewer() admission.Reviewer {
	reviewer := admission.Reviewer{Rules: admission.DefaultRules(), NewID: uuid.NewString, AgentQuotas: admission.NewAgentQuotas(time.Now)}
	c.configuration.ConfigureAdmission(&reviewer)
	if c.options.Gates == nil {
		// Another program runs the components, so this process does not know their gates.
		reviewer.Rules.IsGateDisabled = nil
	}
	return reviewer
}
