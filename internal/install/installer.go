package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
)

// InstallationManager is the field manager of a control plane's objects and the value of their
// InstalledByLabel.
const InstallationManager = "karmada-installation"

// requestTimeout limits each request.
const requestTimeout = 30 * time.Second

// Options describes an installation.
type Options struct {
	rendering.Installation
	// Host is the client configuration for the host cluster.
	Host *rest.Config
	// GivenCA is the user's certificate authority. If it is zero, the installation creates one.
	GivenCA pki.GivenAuthority
	// ExternalEtcd contains the certificates for an external etcd.
	ExternalEtcd certificates.Set
	// CRDs are the control plane's CRDs. nil means this version's CRDs.
	CRDs []CRD
	// EtcdNode is the node that gets the label EtcdNodeLabel. No node is labeled if it is empty.
	EtcdNode string
	// InHost means that this program runs in the host cluster, so it can resolve the names of Services.
	InHost bool
	// ReadyTimeout limits the wait for each workload's Pods. 0 means no limit.
	ReadyTimeout time.Duration
	// Step runs one step of the installation and reports its progress.
	Step func(name string, run func() error) error
	// Progressf reports one change.
	Progressf func(format string, args ...any)
}

// Installer installs, changes and inspects one control plane.
type Installer struct {
	Options
	host    client.Client
	applier Applier
	now     func() time.Time

	settings settings
	stored   *stored
	// files are the certificates, and changes describes those that this run issued.
	files   certificates.Set
	changes []certificates.Change
	// hadCertificates means that certificates were stored before this run.
	hadCertificates bool

	objects hostObjects
	karmada *rest.Config
	tunnel  *tunnel
	written int
}

// Close closes the connections to the control plane.
func (i *Installer) Close() { i.tunnel.close() }

// Result is the outcome of an installation.
type Result struct {
	// IsFirst means that no earlier run completed the installation.
	IsFirst bool
	// Written is the number of objects that were created, changed or deleted.
	Written int
	// Kubeconfig is an administrator's kubeconfig for the control plane.
	Kubeconfig []byte
	Files      certificates.Set
	// Changes describes the certificates that were issued.
	Changes []certificates.Change
	// Karmada is the client configuration for the control plane.
	Karmada *rest.Config
}

// NewInstaller validates the installation's values and returns an Installer. The caller must call Close.
func NewInstaller(options Options) (*Installer, error) {
	settings, err := readSettings(options.Installation)
	if err != nil {
		return nil, err
	}
	host, err := newHostClient(options.Host)
	if err != nil {
		return nil, err
	}
	i := &Installer{Options: options, host: host, now: time.Now, settings: settings}
	i.tunnel = &tunnel{hostConfig: options.Host, host: host, namespace: options.Namespace, app: settings.apiServer}
	i.applier = Applier{API: host, Installer: InstallationManager, Cluster: HostName, Progressf: options.Progressf}
	return i, nil
}

func newHostClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	host, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", HostName, err)
	}
	return host, nil
}

// Install installs the control plane, or changes it so that it matches the values.
func (i *Installer) Install(ctx context.Context) (*Result, error) {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"check the host cluster", i.preflight},
		{"issue certificates", i.ensureCertificates},
		{"start etcd and the API server", i.startAPIServer},
		{"create the APIs of Karmada", i.prepareControlPlane},
		{"start the webhook and the API server of clusters", i.startComponents},
		{"register the webhook and aggregated APIs", i.registerServers},
		{"start the other components", i.awaitComponents},
	} {
		if err := i.Step(step.name, func() error { return step.run(ctx) }); err != nil {
			return nil, err
		}
	}
	return i.result()
}

func (i *Installer) result() (*Result, error) {
	kubeconfig, err := i.kubeconfig(i.settings.externalURL)
	if err != nil {
		return nil, err
	}
	return &Result{IsFirst: i.isFirst(), Written: i.written, Kubeconfig: kubeconfig, Files: i.files, Changes: i.changes, Karmada: i.karmada},
		nil
}

// ExternalURL returns the API server's URL for clients outside the host cluster.
func (i *Installer) ExternalURL() string { return i.settings.externalURL }

// apply applies objects to the host cluster and counts the written ones.
func (i *Installer) apply(ctx context.Context, objects ...client.Object) error {
	written, err := i.applier.Apply(ctx, objects...)
	i.written += written
	return err
}

// awaitReady waits until the workloads' Pods are ready.
func (i *Installer) awaitReady(ctx context.Context, workloads ...client.Object) error {
	for _, workload := range workloads {
		if err := AwaitReady(ctx, i.host, workload, i.ReadyTimeout); err != nil {
			return fmt.Errorf("%w: correct the cause and run the command again, which continues", err)
		}
	}
	return nil
}
