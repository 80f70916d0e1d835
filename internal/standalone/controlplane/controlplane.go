// Package controlplane answers "what is a Karmada control plane made of, and in
// which order does it start?": an API server with Karmada's admission inside, the
// server of the Cluster API beside it, the controllers of Kubernetes that it
// needs, and the components of Karmada, all in one process.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/api/crds"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/standalone"
)

// Names of the servers, which are also the keys of their ports.
const (
	APIServer           = "karmada-apiserver"
	AggregatedAPIServer = "karmada-aggregated-apiserver"
	Webhook             = "karmada-webhook"
)

const (
	availableTimeout = 2 * time.Minute
	availablePoll    = 50 * time.Millisecond
)

// Options say where a control plane lives and what it runs.
type Options struct {
	// Dir holds everything it keeps.
	Dir string
	// BindAddress is where the API server listens; empty means loopback.
	BindAddress string
	// Ports are the ports of the servers by name; one that is missing or 0 gets a
	// free one.
	Ports map[string]int
	// CertificateLifetime is how long its certificates are valid; 0 means a year. They
	// renew themselves.
	CertificateLifetime time.Duration
	// StartOver says what a user can do if the key of the storage is lost; see
	// standalone.Options.
	StartOver string
	// Fsync makes its storage survive a crash of the machine.
	Fsync bool
	// Components are the names of the components to run; see programs.Components.
	Components []string
	// Gates are the feature gates. nil means that whoever runs the components knows:
	// those in this process have the defaults, and admission warns of none.
	Gates *gates.Set
	// Extra are flags of the components; see Configure.
	Extra []string
	// AuditLog is the file in which the API server records requests; empty means none.
	AuditLog string
	// AuditPolicy says which; see standalone.Options.
	AuditPolicy string
	// Log receives etcd's warnings.
	Log zapcore.WriteSyncer
	// Step is told of each step and runs it; nil just runs it.
	Step func(name string, run func() error) error
}

// ControlPlane is a control plane that runs in this process.
type ControlPlane struct {
	*standalone.Cluster
	options Options
	told    *Configuration
	claims  claims
}

// Start starts storage, API servers, controllers and components, each as soon as
// what it needs is ready. The control plane ends by Stop or with ctx.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if o.Step == nil {
		o.Step = func(_ string, run func() error) error { return run() }
	}
	told, err := Configure(o.Gates, o.Extra)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{options: o, told: told}
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
		{"CRDs, roles and " + AggregatedAPIServer, c.install},
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
		StartOver: c.options.StartOver, Fsync: c.options.Fsync, CertificateLifetime: c.options.CertificateLifetime,
		AuditLog: c.options.AuditLog, AuditPolicy: c.options.AuditPolicy, Log: c.options.Log, ServingNames: []string{aggregated.ServingName},
		Admission: []standalone.AdmissionPlugin{{Name: admission.PluginName, Register: c.registerAdmission}},
		// Templates are stored here, not run: nothing may demand what only a
		// cluster with nodes and service accounts has.
		APIServerFlags: []string{
			"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
			"--watch-cache-sizes=" + uncached(),
		},
	})
	return err
}

// uncached names the resources that the API server does not keep in memory. It
// would keep each of them once for every version, and convert each change to the
// old versions, for watches that nobody opens; the one watch that there is reads
// the storage as cheaply.
func uncached() string {
	return "resourcebindings.work.karmada.io#0,clusterresourcebindings.work.karmada.io#0,works.work.karmada.io#0"
}

// install brings the API server into the state that the components need.
func (c *ControlPlane) install(ctx context.Context) error {
	karmada := c.Inside()
	if err := install.Apply(ctx, karmada, install.Namespaces()...); err != nil {
		return err
	}
	webhook, err := c.startWebhook(ctx)
	if err != nil {
		return err
	}
	port, err := c.startAggregated(ctx)
	if err != nil {
		return err
	}
	service, apiService := aggregated.Registration(c.CA().PEM(), "localhost", port)
	registration, err := install.RegistrationObjects(c.Server(), c.CA().PEM())
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, karmada, slices.Concat(install.Roles(), install.EpochReaderRoles(), registration, []client.Object{service, apiService})...); err != nil {
		return err
	}
	conversion := fmt.Sprintf("https://%s:%d%s", standalone.Loopback, webhook, crds.ConversionPath)
	if err := install.ApplyCRDs(ctx, karmada, conversion, c.CA().PEM()); err != nil {
		return err
	}
	return awaitAvailable(ctx, karmada, apiService.Name)
}

// startAggregated runs the server of the Cluster API beside the API server, with
// the same storage, and returns its port.
func (c *ControlPlane) startAggregated(ctx context.Context) (int32, error) {
	options, err := aggregated.NewOptions()
	if err != nil {
		return 0, err
	}
	listener, err := standalone.Listen(standalone.Loopback, c.options.Ports[AggregatedAPIServer])
	if err != nil {
		return 0, err
	}
	options.Karmada = c.Inside()
	options.KubeAPIQPS = -1
	c.judgeIn(options.Server.Admission)
	options.Server.Etcd.StorageConfig.Transport.ServerList = []string{c.EtcdEndpoint()}
	serving := options.Server.SecureServing
	serving.Listener = listener
	serving.ServerCert.CertKey.CertFile, serving.ServerCert.CertKey.KeyFile = c.ServingCert()
	server, err := aggregated.New(options)
	if err != nil {
		return 0, err
	}
	c.Run(ctx, AggregatedAPIServer, server.Run)
	select {
	case <-server.Ready():
		return int32(standalone.Port(listener)), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(availableTimeout):
		return 0, fmt.Errorf("%s is not ready after %s", AggregatedAPIServer, availableTimeout)
	}
}

// startComponents runs the controllers of Kubernetes that a control plane needs
// and the components of Karmada.
func (c *ControlPlane) startComponents(ctx context.Context) error {
	if err := c.StartControllers(ctx, standalone.KarmadaControllers...); err != nil {
		return err
	}
	if len(c.options.Components) == 0 {
		return nil
	}
	options, err := c.told.host()
	if err != nil {
		return err
	}
	options.OfferClaimant, options.EpochMemory = c.claims.offer, &epoch.StorageRecord{}
	c.told.tellIneffective(ctx, c.options.Components)
	lives, err := programs.NewRestartingHost(ctx, func(ctx context.Context) (*programs.Host, error) {
		host, err := programs.NewHost(ctx, c.Inside(), options)
		if err != nil {
			return nil, err
		}
		return host, host.Add(c.options.Components...)
	})
	if err != nil {
		return err
	}
	c.Run(ctx, "components", lives.Run)
	return lives.Ready(ctx)
}

func (c *ControlPlane) registerAdmission(plugins *apiserveradmission.Plugins) {
	inside := c.reviewer()
	inside.Claim = c.claims.ask
	admission.Register(plugins, inside)
}

// judgeIn makes the server of the Cluster API judge by the same rules, which
// protect Clusters from deletion too: here is no webhook that it could ask.
func (c *ControlPlane) judgeIn(options *genericoptions.AdmissionOptions) {
	admission.Register(options.Plugins, c.reviewer())
	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, admission.PluginName)
}

// reviewer answers for this process: it asks nobody else.
func (c *ControlPlane) reviewer() admission.Reviewer {
	inside := admission.Reviewer{Rules: admission.DefaultRules(), NewID: uuid.NewString, AgentQuotas: admission.NewAgentQuotas(time.Now)}
	inside.Rules.AllowNoExecuteTaints = c.told.admission.AllowNoExecuteTaints
	if set := c.options.Gates; set != nil {
		inside.Rules.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
		inside.Rules.OverrideIdentity = set.Enabled(gates.OverrideIdentity)
		inside.LargeStatus = set.Enabled(gates.LargeStatus)
		inside.Rules.IsGateDisabled = func(gate string) bool { return !set.Enabled(featuregate.Feature(gate)) }
	}
	return inside
}

// awaitAvailable waits until requests for the API group reach its server, and whoever
// asks finds the group. The condition alone may be that of an earlier start.
func awaitAvailable(ctx context.Context, karmada *rest.Config, name string) error {
	services, err := aggregator.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, availablePoll, availableTimeout, true, func(ctx context.Context) (bool, error) {
		if last = available(ctx, services, name); last == nil {
			last = discovered(ctx, groups, clusterv1alpha1.GroupVersion)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API group %s: %w", clusterv1alpha1.GroupName, errors.Join(err, last))
	}
	return nil
}

var (
	errNotAvailable  = errors.New("its condition is not known yet")
	errNotDiscovered = errors.New("the API server does not name its resources yet")
)

// discovered asks for the resources of a version, at its server and among those of all
// servers, which is where most clients look.
func discovered(ctx context.Context, client *discovery.DiscoveryClient, version schema.GroupVersion) error {
	if err := client.RESTClient().Get().AbsPath("/apis/" + version.String()).Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking for its resources: %w", err)
	}
	_, resources, failed, err := client.GroupsAndMaybeResources()
	switch {
	case err != nil:
		return fmt.Errorf("asking for all resources: %w", err)
	case failed[version] != nil:
		return failed[version]
	case resources != nil && (resources[version] == nil || len(resources[version].APIResources) == 0):
		return errNotDiscovered
	}
	return nil
}

func available(ctx context.Context, client aggregator.Interface, name string) error {
	service, err := client.ApiregistrationV1().APIServices().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available {
			continue
		}
		if condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
		return errors.New(condition.Message)
	}
	return errNotAvailable
}
