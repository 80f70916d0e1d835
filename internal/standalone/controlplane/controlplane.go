// Package controlplane answers: what are the parts of a Karmada control plane, and in which
// order do they start? The parts are an API server with Karmada's admission plugin, the API
// server of the Cluster API, the Kubernetes controllers that Karmada needs, and the
// components of Karmada. All of them run in one process.
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

// Names of the servers. They are also the keys of Options.Ports.
const (
	APIServer           = "karmada-apiserver"
	AggregatedAPIServer = "karmada-aggregated-apiserver"
	Webhook             = "karmada-webhook"
)

const (
	availableTimeout      = 2 * time.Minute
	availablePollInterval = 50 * time.Millisecond
)

// Options configure a control plane.
type Options struct {
	// Dir is the directory of all data of the control plane.
	Dir string
	// BindAddress is the address on which the API server listens. Empty means loopback.
	BindAddress string
	// Ports are the ports of the servers by name. A missing port or 0 selects a free port.
	Ports map[string]int
	// CertificateLifetime is the validity of the certificates. 0 means one year. The control
	// plane renews them itself.
	CertificateLifetime time.Duration
	// StartOverAdvice is the advice for a user who lost the encryption key; see standalone.Options.
	StartOverAdvice string
	// Fsync makes etcd survive a crash of the machine.
	Fsync bool
	// Components are the names of the components to run; see programs.Components.
	Components []string
	// Gates are the feature gates. nil means that another program runs the components and
	// knows the gates. Then components in this process have the defaults, and admission does
	// not warn about disabled gates.
	Gates *gates.Set
	// ExtraConfig are the flags of the components; see Configure.
	ExtraConfig []string
	// AuditLog is the path of the audit log of the API server. Empty means no audit log.
	AuditLog string
	// AuditPolicy is the audit policy; see standalone.Options.
	AuditPolicy string
	// Log receives etcd's warnings.
	Log zapcore.WriteSyncer
	// Step runs each step of the start, for example to print its name. nil runs the steps
	// without output.
	Step func(name string, run func() error) error
}

// ControlPlane is a running control plane in this process.
type ControlPlane struct {
	*standalone.Cluster
	options       Options
	configuration *Configuration
	claims        policyClaims
}

// Start starts etcd, API servers, controllers and components, each as soon as its
// dependencies are ready. The control plane runs until Stop is called or ctx ends.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if o.Step == nil {
		o.Step = func(_ string, run func() error) error { return run() }
	}
	configuration, err := Configure(o.Gates, o.ExtraConfig)
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
		StartOverAdvice: c.options.StartOverAdvice, Fsync: c.options.Fsync, CertificateLifetime: c.options.CertificateLifetime,
		AuditLog: c.options.AuditLog, AuditPolicy: c.options.AuditPolicy, Log: c.options.Log, ServingNames: []string{aggregated.ServingName},
		Admission: []standalone.AdmissionPlugin{{Name: admission.PluginName, Register: c.registerAdmission}},
		// Templates are stored here, but do not run. So admission must not require what only
		// a cluster with nodes and service accounts has.
		APIServerFlags: []string{
			"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
			"--watch-cache-sizes=" + watchCacheSizes(),
		},
	})
	return err
}

// watchCacheSizes disables the watch cache of some resources. The API server would keep each
// object once for every version, and convert each change to the old versions, for watches
// that no client opens. The only watch reads etcd just as cheaply.
func watchCacheSizes() string {
	return "resourcebindings.work.karmada.io#0,clusterresourcebindings.work.karmada.io#0,works.work.karmada.io#0"
}

// install creates the objects in the API server that the components need, and starts the
// other servers.
func (c *ControlPlane) install(ctx context.Context) error {
	karmada := c.InProcessConfig()
	if err := install.Apply(ctx, karmada, install.Namespaces()...); err != nil {
		return err
	}
	webhookPort, err := c.startWebhook(ctx)
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
	conversion := fmt.Sprintf("https://%s:%d%s", standalone.Loopback, webhookPort, crds.ConversionPath)
	if err := install.ApplyCRDs(ctx, karmada, conversion, c.CA().PEM()); err != nil {
		return err
	}
	return awaitAvailable(ctx, karmada, apiService.Name)
}

// startAggregated runs the API server of the Cluster API with the same etcd, and returns its
// port.
func (c *ControlPlane) startAggregated(ctx context.Context) (int32, error) {
	options, err := aggregated.NewOptions()
	if err != nil {
		return 0, err
	}
	listener, err := standalone.Listen(standalone.Loopback, c.options.Ports[AggregatedAPIServer])
	if err != nil {
		return 0, err
	}
	options.Karmada = c.InProcessConfig()
	options.KubeAPIQPS = -1
	c.addAdmission(options.Server.Admission)
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
		return int32(standalone.ListenerPort(listener)), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(availableTimeout):
		return 0, fmt.Errorf("%s is not ready after %s", AggregatedAPIServer, availableTimeout)
	}
}

// startComponents runs the Kubernetes controllers that a control plane needs, and the
// components of Karmada.
func (c *ControlPlane) startComponents(ctx context.Context) error {
	if err := c.StartControllers(ctx, standalone.KarmadaControllers...); err != nil {
		return err
	}
	if len(c.options.Components) == 0 {
		return nil
	}
	options, err := c.configuration.hostOptions()
	if err != nil {
		return err
	}
	options.SetClaimLookup, options.EpochMemory = c.claims.setLookup, &epoch.StorageRecord{}
	c.configuration.logIneffectiveFlags(ctx, c.options.Components)
	lives, err := programs.NewRestartingHost(ctx, func(ctx context.Context) (*programs.Host, error) {
		host, err := programs.NewHost(ctx, c.InProcessConfig(), options)
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
	reviewer := c.newReviewer()
	reviewer.Claim = c.claims.lookup
	admission.Register(plugins, reviewer)
}

// addAdmission adds the same admission rules to the API server of the Cluster API. They
// protect Clusters from deletion too. In this process there is no webhook that could do so.
func (c *ControlPlane) addAdmission(options *genericoptions.AdmissionOptions) {
	admission.Register(options.Plugins, c.newReviewer())
	options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, admission.PluginName)
}

// newReviewer returns the admission rules of this process. They need no other server.
func (c *ControlPlane) newReviewer() admission.Reviewer {
	reviewer := admission.Reviewer{Rules: admission.DefaultRules(), NewID: uuid.NewString, AgentQuotas: admission.NewAgentQuotas(time.Now)}
	reviewer.Rules.AllowNoExecuteTaints = c.configuration.admission.AllowNoExecuteTaints
	if set := c.options.Gates; set != nil {
		reviewer.Rules.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
		reviewer.Rules.OverrideIdentity = set.Enabled(gates.OverrideIdentity)
		reviewer.LargeStatus = set.Enabled(gates.LargeStatus)
		reviewer.Rules.IsGateDisabled = func(gate string) bool { return !set.Enabled(featuregate.Feature(gate)) }
	}
	return reviewer
}

// awaitAvailable waits until the API group is served and discoverable. The condition of the
// APIService alone may be that of an earlier start.
func awaitAvailable(ctx context.Context, karmada *rest.Config, name string) error {
	services, err := aggregator.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, availablePollInterval, availableTimeout, true, func(ctx context.Context) (bool, error) {
		if lastErr = checkAvailable(ctx, services, name); lastErr == nil {
			lastErr = checkDiscovered(ctx, groups, clusterv1alpha1.GroupVersion)
		}
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API group %s: %w", clusterv1alpha1.GroupName, errors.Join(err, lastErr))
	}
	return nil
}

var (
	errNotAvailable  = errors.New("the APIService has no Available condition yet")
	errNotDiscovered = errors.New("the API server does not list the resources of the group yet")
)

// checkDiscovered returns an error until the resources of a version are listed, both for the
// version alone and in the aggregated discovery that most clients use.
func checkDiscovered(ctx context.Context, client *discovery.DiscoveryClient, version schema.GroupVersion) error {
	if err := client.RESTClient().Get().AbsPath("/apis/" + version.String()).Do(ctx).Error(); err != nil {
		return fmt.Errorf("listing the resources of the group: %w", err)
	}
	_, resources, failed, err := client.GroupsAndMaybeResources()
	switch {
	case err != nil:
		return fmt.Errorf("listing all resources: %w", err)
	case failed[version] != nil:
		return failed[version]
	case resources != nil && (resources[version] == nil || len(resources[version].APIResources) == 0):
		return errNotDiscovered
	}
	return nil
}

func checkAvailable(ctx context.Context, client aggregator.Interface, name string) error {
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
