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
	"karmada.io/karmada/internal/standalone/etcd"
)

const (
	readyTimeout      = 3 * time.Minute
	readyPollInterval = 50 * time.Millisecond
	probeTimeout      = 5 * time.Second
)

// Options configure a cluster.
type Options struct {
	// Name is the name of the cluster and of its kubeconfig context.
	Name string
	// Dir is the directory of all data of the cluster.
	Dir string
	// BindAddress is the address on which the API server listens. Empty means loopback.
	BindAddress string
	// Port is the API server's port. 0 selects a free port.
	Port int
	// ServingNames are added to the DNS names of the serving certificate.
	ServingNames []string
	// CommonName is the common name of the certificate authority.
	CommonName string
	// CertificateLifetime is the validity of the servers' and the administrator's certificates, and the
	// maximum validity of certificates that the cluster signs. 0 means pki.DefaultLeafLifetime. A certificate
	// is renewed when a third of its lifetime is left.
	CertificateLifetime time.Duration
	// StartOverAdvice ends a sentence with advice for a user who lost the encryption key. If it is empty, the
	// advice is to start without Dir.
	StartOverAdvice string
	// Fsync makes etcd survive a crash of the machine.
	Fsync bool
	// Admission are admission plugins that run inside the API server.
	Admission []AdmissionPlugin
	// APIServerFlags are added to the flags of kube-apiserver.
	APIServerFlags []string
	// RunPrograms adds a node to the simulated nodes. On this node, Pods with images of Karmada run
	// as child processes.
	RunPrograms bool
	// ProgramsDisabled is the reason why the node of RunPrograms runs no programs. nil means that
	// the node runs programs.
	ProgramsDisabled error
	// AllowUnconfined lets the node of RunPrograms run programs even if the kernel cannot confine them to
	// their own files.
	AllowUnconfined bool
	// Simulate makes StartWorkloads simulate volumes, load balancers and resource metrics.
	Simulate bool
	// AuditLog is the path of the API server's audit log. No audit log is written if it is empty.
	AuditLog string
	// AuditPolicy is the audit policy as a document of audit.k8s.io. Empty means a policy that
	// records all requests except health checks and reads by this process.
	AuditPolicy string
	// Log receives etcd's warnings.
	Log zapcore.WriteSyncer
}

// Cluster is a running cluster: an API server with its etcd, and the servers that were
// started for it.
type Cluster struct {
	options          Options
	certs            pki.Dir
	ca               *pki.Authority
	leafCertificates []pki.Renewable
	etcd             *etcd.Server
	listener         *listener
	config           *rest.Config
	inProcessConfig  *rest.Config
	metrics          *simulatedMetrics
	servers          serverGroup
	stopOnce         sync.Once
}

// The stages in which the servers of a cluster start. They stop in the reverse order.
const (
	stageStorage = iota
	stageAPI
	stageClients
)

// Start runs etcd and kube-apiserver, and returns when the API server is ready. The cluster
// runs until Stop is called or ctx ends.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.BindAddress == "" {
		o.BindAddress = Loopback
	}
	c := &Cluster{options: o, certs: certsDir(o.Dir)}
	if o.Simulate {
		c.metrics = newSimulatedMetrics()
	}
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
	c.etcd, err = etcd.Start(ctx, etcd.Options{DataDir: storageDir(o.Dir), Certs: c.certs, Fsync: o.Fsync, Log: o.Log})
	if err != nil {
		return nil, err
	}
	c.servers.add(stageStorage, startServer(ctx, "etcd", c.etcd.Run))
	if err := c.encryptStorage(ctx); err != nil {
		return nil, err
	}
	audit, err := auditFlags(o)
	if err != nil {
		return nil, err
	}
	flags := slices.Concat(audit, []string{"--encryption-provider-config=" + c.encryptionFile()}, c.EtcdFlags(), o.APIServerFlags)
	admission := o.Admission
	if o.RunPrograms {
		flags, admission = append(c.kubeletFlags(), flags...), append(slices.Clone(admission), newProgramPlacement())
	}
	apiServer, err := startAPIServer(ctx, apiServerOptions{
		certs: c.certs, listener: c.listener, flags: flags, admission: admission, metrics: c.metrics,
	})
	if err != nil {
		return nil, err
	}
	c.servers.add(stageAPI, apiServer.server)
	c.inProcessConfig = &rest.Config{
		Host: c.Server(), BearerToken: apiServer.token, QPS: -1, Transport: &InProcessTransport{Handler: apiServer.handler},
	}
	c.servers.add(stageStorage, startServer(ctx, "certificate renewal", c.renewCertificates))
	if err := errors.Join(pki.WriteKubeconfig(c.Kubeconfig(), c.AdminContext()), c.writeInProcessKubeconfig()); err != nil {
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

// awaitReady polls the API server until it is ready.
func (c *Cluster) awaitReady(ctx context.Context) error {
	config := rest.CopyConfig(c.config)
	config.Timeout = probeTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client of cluster %q: %w", c.options.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPollInterval)
	defer ticker.Stop()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if failed := c.servers.failure(); failed != nil {
			return failed
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("API server of cluster %q is not ready: %w", c.options.Name, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// AdminContext is the kubeconfig context of the administrator.
func (c *Cluster) AdminContext() pki.KubeconfigContext {
	return adminContext(c.options.Name, c.certs, c.ca.PEM(), c.Server())
}

// Server returns the API server's URL.
func (c *Cluster) Server() string {
	host := c.options.BindAddress
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = Loopback
	}
	return "https://" + net.JoinHostPort(host, fmt.Sprint(c.Port()))
}

// Port returns the API server's port.
func (c *Cluster) Port() int { return ListenerPort(c.listener) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.options.Dir, "admin.kubeconfig") }

// Config returns the client configuration of the administrator, without a client-side rate limit.
// The configuration refers to certificate files that are renewed.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// InProcessConfig returns the configuration of clients that run in this process. The clients have
// all permissions and no rate limit, and call the API server without a network connection.
func (c *Cluster) InProcessConfig() *rest.Config { return rest.CopyConfig(c.inProcessConfig) }

// EtcdFlags returns the flags with which additional API servers store their objects in the cluster's
// etcd.
func (c *Cluster) EtcdFlags() []string { return c.etcd.APIServerFlags() }

// CA returns the certificate authority that signs the certificates of the cluster's servers.
func (c *Cluster) CA() *pki.Authority { return c.ca }

// Certs returns the directory of the cluster's certificates.
func (c *Cluster) Certs() pki.Dir { return c.certs }

// ServingCert returns the certificate and key for servers of the cluster other than the API server.
// The certificate is valid for localhost. The files are renewed while the cluster runs, so a server
// must reload them.
func (c *Cluster) ServingCert() (certFile, keyFile string) {
	return c.certs.CertFile(certAdmin), c.certs.KeyFile(certAdmin)
}

// StartControllers runs the named controllers of kube-controller-manager.
func (c *Cluster) StartControllers(ctx context.Context, controllers ...string) error {
	s, err := startControllerManager(ctx, c.certs, c.inProcessAccess(), c.options, controllers)
	if err != nil {
		return err
	}
	c.servers.add(stageClients, s)
	return nil
}

// Run runs an additional server that needs the API server. The additional server is stopped before
// the API server. If the additional server ends by itself, the cluster has failed, and Failure
// returns the error.
func (c *Cluster) Run(ctx context.Context, name string, run func(context.Context) error) {
	c.servers.add(stageClients, startServer(ctx, name, run))
}

// StartWorkloads runs everything that Pods need: all controllers, the scheduler, and
// simulated nodes.
func (c *Cluster) StartWorkloads(ctx context.Context, nodes NodeOptions) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making client of cluster %q: %w", c.options.Name, err)
	}
	kubeletPort := simulatorKubeletPort
	var listener net.Listener
	if c.options.RunPrograms {
		if listener, err = Listen(Loopback, 0); err != nil {
			return err
		}
		kubeletPort = ListenerPort(listener)
	}
	if err := createNodes(ctx, client, nodes, kubeletPort); err != nil {
		return err
	}
	if err := c.StartControllers(ctx, memberControllers...); err != nil {
		return err
	}
	scheduler, err := startScheduler(ctx, c.inProcessAccess())
	if err != nil {
		return err
	}
	c.servers.add(stageClients, scheduler)
	simulator, err := startSimulator(ctx, c.inProcessAccess(), kubeletPort)
	if err != nil {
		return err
	}
	c.servers.add(stageClients, simulator)
	if c.options.Simulate {
		manager, err := newSimulation(ctx, c.InProcessConfig(), c.metrics)
		if err != nil {
			return err
		}
		c.Run(ctx, "simulation", manager.Start)
	}
	if listener == nil {
		return nil
	}
	return c.startPrograms(ctx, listener, nodes.topologyLabels(0))
}

// Failure returns the error of a server that ended by itself. It returns nil if all servers run.
func (c *Cluster) Failure() error { return c.servers.failure() }

// Stop stops all servers in reverse start order, and returns after a few seconds at most. It may be called
// more than once.
func (c *Cluster) Stop() {
	c.stopOnce.Do(func() {
		c.servers.stop()
		if c.listener != nil {
			c.listener.disconnect()
		}
	})
}

// LoopbackAdminContext returns the administrator's kubeconfig context for a cluster that another process
// runs in dir and whose API server listens on a loopback port.
func LoopbackAdminContext(name, dir string, port int) (pki.KubeconfigContext, error) {
	certs := pki.Dir{Path: filepath.Join(dir, "pki")}
	ca, err := os.ReadFile(certs.CertFile(certCA))
	if err != nil {
		return pki.KubeconfigContext{}, fmt.Errorf("reading certificate authority of cluster %q: %w", name, err)
	}
	return adminContext(name, certs, ca, LoopbackURL(port)), nil
}

// LoopbackURL returns the URL of an API server on a loopback port.
func LoopbackURL(port int) string { return "https://" + net.JoinHostPort(Loopback, fmt.Sprint(port)) }

func adminContext(name string, certs pki.Dir, ca []byte, server string) pki.KubeconfigContext {
	return pki.KubeconfigContext{
		Name: name, User: name + "-admin", Server: server, CA: ca,
		ClientCertFile: certs.CertFile(certAdmin), ClientKeyFile: certs.KeyFile(certAdmin),
	}
}
