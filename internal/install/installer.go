// Package installer installs a control plane in a host cluster, changes it and removes it.
//
// The objects come from the chart; see package rendering. An Installer applies the objects that
// differ, in the order in which they need each other, and waits for their Pods. Invariants:
//
//   - A second run with the same values writes nothing. A run after a failed run continues.
//   - Objects of other installers are neither changed nor deleted.
//   - Certificates are in Secrets of the host. A run issues only certificates that must be issued.
//   - The Secret <release>-installation contains the values and the names of all objects, so that
//     later commands need no flags of the first one.
package installer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
)

// Name is the value of the label InstalledByLabel on the objects of a control plane, and their field
// manager.
const Name = "karmada-installation"

// Names of the clusters in messages.
const (
	hostName    = install.HostName
	karmadaName = install.KarmadaName
)

// requestTimeout is the time limit of each request.
const requestTimeout = 30 * time.Second

// Options describe one installation.
type Options struct {
	rendering.Installation
	// Host is the client configuration of the host cluster.
	Host *rest.Config
	// GivenCA is the certificate authority of the user. If it is zero, the installation creates one.
	GivenCA pki.GivenAuthority
	// ExternalEtcd contains the certificates of an external etcd.
	ExternalEtcd certificates.Set
	// CRDs are the definitions in the control plane. nil means those of this version.
	CRDs []CRD
	// EtcdNode is the name of a node that gets the label EtcdNodeLabel. Empty means none.
	EtcdNode string
	// InHost means that this program runs in the host, where the Services of the host resolve.
	InHost bool
	// ReadyTimeout limits how long the Pods of one workload may take. 0 means no limit.
	ReadyTimeout time.Duration
	// Step runs one step and reports its progress.
	Step func(name string, run func() error) error
	// Progressf reports one change.
	Progressf func(format string, args ...any)
}

// Installer installs one control plane.
type Installer struct {
	Options
	host    client.Client
	applier install.Applier
	now     func() time.Time

	settings settings
	stored   *stored
	// files are the certificates. changes are the differences to the stored ones.
	files   certificates.Set
	changes []certificates.Change
	// hadCertificates means that certificates were stored before this run.
	hadCertificates bool

	objects hostObjects
	karmada *rest.Config
	tunnel  *tunnel
	written int
}

// Close ends the connections to the control plane.
func (i *Installer) Close() { i.tunnel.close() }

// Result is the outcome of an installation.
type Result struct {
	// IsFirst reports whether no installation was successful before.
	IsFirst bool
	// Written is the number of objects that were created, changed or deleted.
	Written int
	// Kubeconfig is the kubeconfig of an administrator of the control plane.
	Kubeconfig []byte
	// Files are the certificates.
	Files certificates.Set
	// Changes are the certificates that were issued.
	Changes []certificates.Change
	// Karmada is the client configuration of the control plane.
	Karmada *rest.Config
}

// New returns an installer. An error names an invalid value.
func New(options Options) (*Installer, error) {
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
	i.applier = install.Applier{API: host, Installer: Name, Cluster: hostName, Progressf: options.Progressf}
	return i, nil
}

func newHostClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	host, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", hostName, err)
	}
	return host, nil
}

// Install installs the control plane, or changes it to the values.
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
	return &Result{IsFirst: i.isFirst(), Written: i.written, Kubeconfig: kubeconfig, Files: i.files, Changes: i.changes, Karmada: i.karmada}, nil
}

// ExternalURL returns the URL of the API server for clients outside the host.
func (i *Installer) ExternalURL() string { return i.settings.externalURL }

// apply writes objects of the host that differ.
func (i *Installer) apply(ctx context.Context, objects ...client.Object) error {
	written, err := i.applier.Apply(ctx, objects...)
	i.written += written
	return err
}

// awaitReady waits for the Pods of workloads.
func (i *Installer) awaitReady(ctx context.Context, workloads ...client.Object) error {
	for _, workload := range workloads {
		if err := install.AwaitReady(ctx, i.host, workload, i.ReadyTimeout); err != nil {
			return fmt.Errorf("%w: correct the cause and run the command again, which continues", err)
		}
	}
	return nil
}
