package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/inprocess"
)

// etcdDir is the directory of etcd in that of a cluster.
const etcdDir = "etcd"

const (
	readyTimeout = 3 * time.Minute
	readyPoll    = 50 * time.Millisecond
	probeTimeout = 5 * time.Second
)

// Options describe a cluster.
type Options struct {
	// Name is the cluster's name: the context in its kubeconfig.
	Name string
	// Dir holds everything the cluster keeps.
	Dir string
	// BindAddress is where the API server listens; empty means loopback.
	BindAddress string
	// Port is the API server's port; 0 picks a free one.
	Port int
	// ServingNames are names that the serving certificate holds besides those of
	// the API server itself.
	ServingNames []string
	// CommonName is the name of the certificate authority.
	CommonName string
	// CertificateLifetime is how long the certificates of its servers and of its
	// administrator are valid; 0 means pki.DefaultLeafLifetime. They are renewed when
	// a third of it is left. What is signed for others is valid no longer, either.
	CertificateLifetime time.Duration
	// StartOver says what a user can do if the key of the storage is lost and there is no
	// copy of it, as the end of a sentence. Empty means to start without Dir.
	StartOver string
	// Fsync makes etcd survive a crash of the machine.
	Fsync bool
	// Admission are plugins that run inside the API server.
	Admission []AdmissionPlugin
	// APIServerFlags are added to kube-apiserver's.
	APIServerFlags []string
	// Programs has the workloads run Pods of Karmada's images as child processes, on a
	// node beside the simulated ones.
	Programs bool
	// ProgramsOff says why that node runs nothing; nil means that it runs programs.
	ProgramsOff error
	// ProgramsUnconfined lets it run them where the kernel cannot confine them to their
	// files.
	ProgramsUnconfined bool
	// AuditLog is the file in which the API server records requests; empty means none.
	AuditLog string
	// AuditPolicy says which requests it records, as a document of audit.k8s.io; empty
	// means all but health checks and the reads of this process.
	AuditPolicy string
	// Log receives etcd's warnings.
	Log zapcore.WriteSyncer
}

// Cluster is a running cluster: an API server with its storage, and what was
// started on top of it.
type Cluster struct {
	options  Options
	certs    pki.Dir
	ca       *pki.Authority
	leaves   []issued
	endpoint string
	listener *listener
	config   *rest.Config
	inside   *rest.Config
	group    group
	stopped  sync.Once
}

// The stages in which a cluster's servers start and, backwards, stop.
const (
	stageStorage = iota
	stageAPI
	stageClients
)

// Start runs etcd and kube-apiserver and returns once the API server is ready.
// The cluster ends by Stop, which also the end of ctx calls.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.BindAddress == "" {
		o.BindAddress = Loopback
	}
	c := &Cluster{options: o, certs: pki.Dir{Path: filepath.Join(o.Dir, "pki")}}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	context.AfterFunc(ctx, c.Stop)
	bound, err := Listen(o.BindAddress, o.Port)
	if err != nil {
		return nil, err
	}
	c.listener = newListener(bound)
	if err := c.ensureCertificates(); err != nil {
		return nil, err
	}
	var etcd *server
	c.endpoint, etcd, err = startEtcd(ctx, EtcdOptions{DataDir: filepath.Join(o.Dir, etcdDir), Fsync: o.Fsync, Log: o.Log})
	if err != nil {
		return nil, err
	}
	c.group.add(stageStorage, etcd)
	if err := c.encryptStorage(ctx); err != nil {
		return nil, err
	}
	audit, err := auditFlags(o)
	if err != nil {
		return nil, err
	}
	flags, admission := slices.Concat(audit, []string{"--encryption-provider-config=" + c.encryptionFile()}, o.APIServerFlags), o.Admission
	if o.Programs {
		flags, admission = append(c.kubeletFlags(), flags...), append(slices.Clone(admission), placePrograms())
	}
	apiServer, err := startAPIServer(ctx, apiServerOptions{
		certs: c.certs, etcd: c.endpoint, listener: c.listener, flags: flags, admission: admission,
	})
	if err != nil {
		return nil, err
	}
	c.group.add(stageAPI, apiServer.server)
	c.inside = &rest.Config{
		Host: c.Server(), BearerToken: apiServer.token, QPS: -1, Transport: &inprocess.Transport{Handler: apiServer.handler},
	}
	c.group.add(stageStorage, start(ctx, "certificate renewal", c.renewCertificates))
	if err := errors.Join(pki.WriteKubeconfig(c.Kubeconfig(), c.Access()), c.writeInsideKubeconfig()); err != nil {
		return nil, err
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return nil, fmt.Errorf("reading kubeconfig of cluster %q: %w", o.Name, err)
	}
	c.config.QPS = -1
	if err := c.awaitReady(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// awaitReady polls the API server until it says that it is ready.
func (c *Cluster) awaitReady(ctx context.Context) error {
	config := rest.CopyConfig(c.config)
	config.Timeout = probeTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client of cluster %q: %w", c.options.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if failed := c.group.failed(); failed != nil {
			return failed
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("API server of cluster %q is not ready: %w", c.options.Name, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// Access is the administrator's way into the cluster.
func (c *Cluster) Access() pki.KubeconfigContext {
	return accessTo(c.options.Name, c.certs, c.ca.PEM(), c.Server())
}

// Server is the URL of the API server.
func (c *Cluster) Server() string {
	host := c.options.BindAddress
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = Loopback
	}
	return "https://" + net.JoinHostPort(host, fmt.Sprint(c.Port()))
}

// Port is the API server's port.
func (c *Cluster) Port() int { return Port(c.listener) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.options.Dir, "admin.kubeconfig") }

// Config is the administrator's client configuration, without a client-side
// rate limit. It names the files of its certificate, which are renewed.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Inside is the configuration of clients that run in this process: they have all
// rights, no rate limit, and no network between them and the API server.
func (c *Cluster) Inside() *rest.Config { return rest.CopyConfig(c.inside) }

// EtcdEndpoint is the address of the cluster's etcd, for servers that keep their
// own objects there.
func (c *Cluster) EtcdEndpoint() string { return c.endpoint }

// CA is the certificate authority that signs what the cluster's servers show.
func (c *Cluster) CA() *pki.Authority { return c.ca }

// Certs is the directory of the cluster's certificates.
func (c *Cluster) Certs() pki.Dir { return c.certs }

// ServingCert returns the certificate and key that servers beside the API server
// show; it is valid for localhost. The files are renewed while the cluster runs: a
// server has to look for changes.
func (c *Cluster) ServingCert() (certFile, keyFile string) {
	return c.certs.CertFile(certAdmin), c.certs.KeyFile(certAdmin)
}

// StartControllers runs the named controllers of kube-controller-manager; none
// means all that are on by default.
func (c *Cluster) StartControllers(ctx context.Context, controllers ...string) error {
	s, err := startControllerManager(ctx, c.certs, c.insider(), c.options, controllers)
	if err != nil {
		return err
	}
	c.group.add(stageClients, s)
	return nil
}

// Run runs a server beside the cluster's own that needs its API server: it is
// stopped before that, and its early end is a failure of the cluster.
func (c *Cluster) Run(ctx context.Context, name string, run func(context.Context) error) {
	c.group.add(stageClients, start(ctx, name, run))
}

// StartWorkloads runs what lets Pods run: all controllers, the scheduler, and
// simulated nodes.
func (c *Cluster) StartWorkloads(ctx context.Context, nodes NodeOptions) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making client of cluster %q: %w", c.options.Name, err)
	}
	kubelet := simulatorKubeletPort
	var listener net.Listener
	if c.options.Programs {
		if listener, err = Listen(Loopback, 0); err != nil {
			return err
		}
		kubelet = Port(listener)
	}
	if err := createNodes(ctx, client, nodes, kubelet); err != nil {
		return err
	}
	if err := c.StartControllers(ctx); err != nil {
		return err
	}
	scheduler, err := startScheduler(ctx, c.insider())
	if err != nil {
		return err
	}
	c.group.add(stageClients, scheduler)
	simulator, err := startSimulator(ctx, c.insider(), kubelet)
	if err != nil {
		return err
	}
	c.group.add(stageClients, simulator)
	if listener == nil {
		return nil
	}
	return c.startPrograms(ctx, listener, nodes.topology(0))
}

// Failed returns an error as soon as a server of the cluster ended by itself.
func (c *Cluster) Failed() error { return c.group.failed() }

// Stop ends all servers of the cluster in the reverse order of their start and
// waits for them, a few seconds at most. It may be called more than once.
func (c *Cluster) Stop() {
	c.stopped.Do(func() {
		c.group.stop()
		if c.listener != nil {
			c.listener.disconnect()
		}
	})
}

// AccessTo is the administrator's way into a cluster that another process runs
// in dir and whose API server listens on a loopback port.
func AccessTo(name, dir string, port int) (pki.KubeconfigContext, error) {
	certs := pki.Dir{Path: filepath.Join(dir, "pki")}
	ca, err := os.ReadFile(certs.CertFile(certCA))
	if err != nil {
		return pki.KubeconfigContext{}, fmt.Errorf("reading certificate authority of cluster %q: %w", name, err)
	}
	return accessTo(name, certs, ca, LoopbackURL(port)), nil
}

// LoopbackURL is where an API server answers that listens on a loopback port.
func LoopbackURL(port int) string { return "https://" + net.JoinHostPort(Loopback, fmt.Sprint(port)) }

func accessTo(name string, certs pki.Dir, ca []byte, server string) pki.KubeconfigContext {
	return pki.KubeconfigContext{
		Name: name, User: name + "-admin", Server: server, CA: ca,
		ClientCertFile: certs.CertFile(certAdmin), ClientKeyFile: certs.KeyFile(certAdmin),
	}
}
