package up

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/standalone"
)

// Names of the certificates in the estimators' directory. The authority signs no other certificates, so
// its certificates grant no permissions in any API server.
const (
	estimatorCA         = "ca"
	estimatorClientCert = "client"
	// estimatorAddonCert is the certificate of estimators that karmadactl addons installs in a
	// simulated member.
	estimatorAddonCert = "server"
)

// estimatorServerCert returns the name of the certificate of the given member's estimator.
func estimatorServerCert(member string) string { return "server-" + member }

// installer is the value of InstalledByLabel on objects that karmada up manages.
const installer = "karmada-up"

// estimatorPortName is the name under which the port of the given member's estimator is stored.
func estimatorPortName(member string) string { return estimatorPrefix + member }

const estimatorPrefix = "estimator-"

func estimatorPortNames(members []string) []string {
	names := make([]string, len(members))
	for i, member := range members {
		names[i] = estimatorPortName(member)
	}
	return names
}

// ensureEstimatorCertificates issues the certificates of the members' estimators and of their client.
func (d dataDir) ensureEstimatorCertificates(members []string, lifetime time.Duration) error {
	authority, err := d.estimatorAuthority()
	if err != nil {
		return err
	}
	certificates := sharedCertificates(authority, lifetime)
	for _, member := range members {
		certificates = append(certificates, memberCertificate(authority, member, lifetime))
	}
	_, err = pki.EnsureAll(certificates)
	return err
}

// estimatorAuthority returns the authority for the certificates of estimators and their client.
func (d dataDir) estimatorAuthority() (*pki.Authority, error) {
	return pki.Dir{Path: d.estimatorsDir()}.EnsureAuthority(estimatorCA, "karmada-estimators")
}

// sharedCertificates returns the certificates that all members share: those of the estimators' client
// and of the estimators that karmadactl addons installs.
func sharedCertificates(authority *pki.Authority, lifetime time.Duration) []pki.Renewable {
	return []pki.Renewable{
		{Authority: authority, Name: estimatorClientCert, Leaf: pki.Leaf{
			CommonName: programs.Scheduler, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Lifetime: lifetime,
		}},
		estimatorServer(authority, estimatorAddonCert, "*", lifetime),
	}
}

// memberCertificate returns the serving certificate of the given member's estimator.
func memberCertificate(authority *pki.Authority, member string, lifetime time.Duration) pki.Renewable {
	return estimatorServer(authority, estimatorServerCert(member), clusterv1alpha1.EstimatorPrefix+member, lifetime, standalone.Loopback)
}

// estimatorServer returns a serving certificate for the estimators behind one of the control plane's
// Services.
func estimatorServer(authority *pki.Authority, name, service string, lifetime time.Duration, addresses ...string) pki.Renewable {
	return pki.Renewable{Authority: authority, Name: name, Leaf: pki.Leaf{
		CommonName: programs.SchedulerEstimator, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Lifetime: lifetime,
		Hosts: append([]string{service + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"}, addresses...),
	}}
}

// maintainEstimatorCertificates renews the certificates that estimators share until ctx ends, and
// updates the Secret that publishCertificate writes.
func (i *installation) maintainEstimatorCertificates(ctx context.Context, karmada *rest.Config) {
	authority, err := i.dir.estimatorAuthority()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the authority of estimators", "directory", i.dir.estimatorsDir())
		return
	}
	i.dir.renewEstimatorCertificates(ctx, sharedCertificates(authority, i.options.CertificateLifetime),
		func() error { return i.dir.publishCertificate(ctx, karmada) })
}

// maintainMemberCertificate renews the serving certificate of the given member's estimator until ctx
// ends.
func (d dataDir) maintainMemberCertificate(ctx context.Context, member string, lifetime time.Duration) {
	authority, err := d.estimatorAuthority()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the authority of estimators", "directory", d.estimatorsDir())
		return
	}
	d.renewEstimatorCertificates(ctx, []pki.Renewable{memberCertificate(authority, member, lifetime)}, func() error { return nil })
}

// renewEstimatorCertificates renews the certificates until ctx ends. It calls renewed after each check
// that returned no error.
func (d dataDir) renewEstimatorCertificates(ctx context.Context, certificates []pki.Renewable, renewed func() error) {
	pki.RenewAll(ctx, certificates, func(err error) error {
		if err == nil {
			err = renewed()
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Renewing the certificates of estimators", "directory", d.estimatorsDir())
		}
		return err
	})
}

// publishCertificate writes a serving certificate to a Secret in the control plane, from which
// karmadactl addons copies it for estimators in simulated members. The certificate grants no
// permissions in an API server and does not authenticate a client. publishCertificate does not change
// another owner's Secret.
func (d dataDir) publishCertificate(ctx context.Context, karmada *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	certs, data := pki.Dir{Path: d.estimatorsDir()}, map[string][]byte{}
	for key, file := range map[string]string{
		install.CertKey: certs.CertFile(estimatorAddonCert), install.KeyKey: certs.KeyFile(estimatorAddonCert),
		install.CAKey: certs.CertFile(estimatorCA),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the certificate of estimators: %w", err)
		}
		data[key] = content
	}
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	_, err = newApplier(karmadaClient).Apply(ctx,
		install.NewSecret(clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.CertificateSecret, data))
	if foreign := (*install.ForeignError)(nil); errors.As(err, &foreign) {
		return nil
	}
	return err
}

// estimatorClientConfig returns the flags with which the scheduler and the descheduler connect to the
// members' estimators.
func (d dataDir) estimatorClientConfig() []string {
	certs := pki.Dir{Path: d.estimatorsDir()}
	config := []string{programs.Scheduler + ".enable-scheduler-estimator=true"}
	for _, component := range []string{programs.Scheduler, programs.Descheduler} {
		config = append(config,
			component+".scheduler-estimator-ca-file="+certs.CertFile(estimatorCA),
			component+".scheduler-estimator-cert-file="+certs.CertFile(estimatorClientCert),
			component+".scheduler-estimator-key-file="+certs.KeyFile(estimatorClientCert))
	}
	return config
}

// publishEstimators writes the Services that contain the addresses of the members' estimators, and
// deletes the Services of members that are not running.
func (i *installation) publishEstimators(ctx context.Context, progress *progressReporter) error {
	karmada := i.control.Config()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	existing := &corev1.ServiceList{}
	if err := karmadaClient.List(ctx, existing, client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem)); err != nil {
		return fmt.Errorf("listing the Services of estimators: %w", err)
	}
	clusters, err := listClusters(ctx, karmada)
	if err != nil {
		return err
	}
	plan := planEstimatorServices(i.state, clusters, existing.Items)
	for _, name := range plan.foreign {
		progress.report(event{Text: fmt.Sprintf("Service %s in namespace %s is not of karmada up, and stays: the scheduler uses the estimator at its address", name, clusterv1alpha1.NamespaceKarmadaSystem)})
	}
	applier := newApplier(karmadaClient)
	if _, err := applier.Apply(ctx, plan.write...); err != nil {
		return err
	}
	return applier.Delete(ctx, plan.remove...)
}

// newApplier returns an applier for the objects that karmada up manages in the control plane.
func newApplier(karmada client.Client) install.Applier {
	return install.Applier{API: karmada, Installer: installer, Cluster: "the control plane", Progressf: func(string, ...any) {}}
}

// estimatorServices are changes to the Services that contain the estimators' addresses.
type estimatorServices struct {
	write, remove []client.Object
	// foreign are the names of other owners' Services that have the same name as a Service to write.
	foreign []string
}

// planEstimatorServices compares the estimators' Services with the running members. A member gets a
// Service if a Cluster has its name and is not another cluster. A Service is removed only if karmada up
// wrote it, and if it belongs to no running member, or to another cluster.
func planEstimatorServices(state storedState, clusters []clusterv1alpha1.Cluster, existing []corev1.Service) (plan estimatorServices) {
	wanted := map[string]*corev1.Service{}
	keep := map[string]bool{}
	for _, member := range state.Members {
		service := newEstimatorService(member, state.Ports[estimatorPortName(member)])
		at := slices.IndexFunc(clusters, func(cluster clusterv1alpha1.Cluster) bool { return cluster.Name == member })
		switch {
		case at < 0:
			keep[service.Name] = true
		case isMemberCluster(&clusters[at], state.Ports[member]):
			wanted[service.Name], keep[service.Name] = service, true
		}
	}
	for i := range existing {
		service := &existing[i]
		isOurs, want := service.Labels[clusterv1alpha1.InstalledByLabel] == installer, wanted[service.Name]
		switch {
		case !isOurs && want != nil:
			plan.foreign = append(plan.foreign, service.Name)
			delete(wanted, service.Name)
		case want != nil && hasAddress(service, want):
			delete(wanted, service.Name)
		case isOurs && !keep[service.Name] && strings.HasPrefix(service.Name, clusterv1alpha1.EstimatorPrefix):
			plan.remove = append(plan.remove, newEstimatorService(strings.TrimPrefix(service.Name, clusterv1alpha1.EstimatorPrefix), 0))
		}
	}
	for _, member := range state.Members {
		if service := wanted[clusterv1alpha1.EstimatorPrefix+member]; service != nil {
			plan.write = append(plan.write, service)
		}
	}
	return plan
}

// isMemberCluster reports whether a Cluster that has a member's name is this member. A Cluster in pull
// mode may have no address.
func isMemberCluster(cluster *clusterv1alpha1.Cluster, port int) bool {
	return cluster.Spec.APIEndpoint == standalone.LoopbackURL(port) ||
		cluster.Spec.APIEndpoint == "" && cluster.Spec.SyncMode == clusterv1alpha1.Pull
}

// hasAddress reports whether the Service contains the wanted estimator address.
func hasAddress(service, want *corev1.Service) bool {
	return service.Spec.Type == want.Spec.Type && service.Spec.ExternalName == want.Spec.ExternalName &&
		equality.Semantic.DeepEqual(service.Spec.Ports, want.Spec.Ports)
}

// newEstimatorService returns the Service that contains the address of the given member's estimator.
func newEstimatorService(member string, port int) *corev1.Service {
	service := install.EstimatorAddress(member, standalone.Loopback, port)
	service.Labels = map[string]string{clusterv1alpha1.InstalledByLabel: installer}
	return service
}
