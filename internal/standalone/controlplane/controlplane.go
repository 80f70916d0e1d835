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
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/api/crds"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/standalone"
)

// APIServer is the name of the API server. It is also its key in Options.Ports.
const APIServer = "karmada-apiserver"

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
	// Components are the names of the components to run; see components.HostedNames.
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
		AuditLog: c.options.AuditLog, AuditPolicy: c.options.AuditPolicy, Log: c.options.Log, ServingNames: []string{aggregated.ServingName},
		Admission: []standalone.AdmissionPlugin{{Name: admission.PluginName, Register: c.registerAdmission}},
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
	if err := install.Apply(ctx, karmada, install.Namespaces()...); err != nil {
		return err
	}
	servers, err := c.startServers(ctx)
	if err != nil {
		return err
	}
	registration, err := install.RegistrationObjects(c.Server(), c.CA().PEM())
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, karmada, slices.Concat(install.Roles(), install.EpochReaderRoles(), registration, servers.registrations)...); err != nil {
		return err
	}
	conversion := fmt.Sprintf("https://%s:%d%s", standalone.Loopback, servers.ports[programs.Webhook], crds.ConversionPath)
	if err := install.ApplyCRDs(ctx, karmada, conversion, c.CA().PEM()); err != nil {
		return err
	}
	return awaitRegistrations(ctx, karmada, servers.registrations)
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
	reviewer.Claim = c.claims.lookup
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

// awaitRegistrations waits until the APIs of all registered servers are available.
func awaitRegistrations(ctx context.Context, karmada *rest.Config, registrations []client.Object) error {
	for _, object := range registrations {
		if service, ok := object.(*apiregistrationv1.APIService); ok {
			version := schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}
			if err := awaitAvailable(ctx, karmada, service.Name, version); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitAvailable waits until the API group is served and is in the discovery. The condition of the
// APIService alone does not suffice, because an earlier start may have written it.
func awaitAvailable(ctx context.Context, karmada *rest.Config, name string, version schema.GroupVersion) error {
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
			lastErr = checkDiscovered(ctx, groups, version)
		}
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API group %s: %w", version.Group, errors.Join(err, lastErr))
	}
	return nil
}

var (
	errNotAvailable  = errors.New("the APIService has no Available condition yet")
	errNotDiscovered = errors.New("the API server does not list the resources of the group yet")
)

// checkDiscovered returns an error until two documents list the resources of a version: the
// document of the version, and the aggregated discovery that most clients use.
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
