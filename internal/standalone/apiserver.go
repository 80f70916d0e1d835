package standalone

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"karmada.io/karmada/internal/pki"
)

const (
	serviceSubnet        = "10.96.0.0/12"
	serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"
)

// AdmissionPlugin is an admission plugin that runs inside the API server.
type AdmissionPlugin struct {
	Name     string
	Register func(*admission.Plugins)
}

// apiServerOptions describe one kube-apiserver.
type apiServerOptions struct {
	certs    pki.Dir
	etcd     string
	listener net.Listener
	// flags are kube-apiserver flags on top of those every cluster has.
	flags     []string
	admission []AdmissionPlugin
}

// apiServer is a kube-apiserver, and the way to it for clients of this process.
type apiServer struct {
	*server
	handler http.Handler
	// token is what clients of this process prove themselves with.
	token string
}

// startAPIServer runs a kube-apiserver on a listener that is already open.
func startAPIServer(ctx context.Context, o apiServerOptions) (*apiServer, error) {
	s := options.NewServerRunOptions()
	for _, plugin := range o.admission {
		plugin.Register(s.Admission.GenericAdmission.Plugins)
		s.Admission.GenericAdmission.RecommendedPluginOrder = append([]string{plugin.Name}, s.Admission.GenericAdmission.RecommendedPluginOrder...)
	}
	if err := parse("kube-apiserver", s.Flags(), append(apiServerFlags(o), o.flags...)); err != nil {
		return nil, err
	}
	s.SecureServing.Listener = o.listener
	s.SecureServing.BindPort = Port(o.listener)
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.SetFallback(); err != nil {
		return nil, fmt.Errorf("setting feature gates of kube-apiserver: %w", err)
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing options of kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("checking options of kube-apiserver: %w", errs[0])
	}
	return runAPIServer(ctx, completed)
}

// runAPIServer does what the program does with completed options, but keeps hold
// of the server.
func runAPIServer(ctx context.Context, completed options.CompletedOptions) (*apiServer, error) {
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	// The API servers of a process share their metrics, where the last one alone would
	// tell the size of its storage, and hold up who reads them for as long as it takes
	// to give up on that storage when it has stopped.
	etcdmetrics.SetStorageMonitorGetter(noStorageMonitors)
	tellVersion(config)
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("completing the configuration of kube-apiserver: %w", err)
	}
	chain, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, fmt.Errorf("making kube-apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	return &apiServer{
		server:  start(ctx, "kube-apiserver", prepared.Run),
		handler: chain.GenericAPIServer.Handler,
		token:   chain.GenericAPIServer.LoopbackClientConfig.BearerToken,
	}, nil
}

func noStorageMonitors() ([]etcdmetrics.Monitor, error) { return nil, nil }

func apiServerFlags(o apiServerOptions) []string {
	host, _, _ := net.SplitHostPort(o.listener.Addr().String())
	return []string{
		"--etcd-servers=" + o.etcd,
		"--bind-address=" + host,
		"--advertise-address=" + host,
		// The default reconciler publishes the server's address as endpoints of
		// the kubernetes Service, which may not be a loopback address.
		"--endpoint-reconciler-type=none",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--enable-bootstrap-token-auth=true",
		"--service-cluster-ip-range=" + serviceSubnet,
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + o.certs.KeyFile(certServiceAccount),
		"--service-account-signing-key-file=" + o.certs.KeyFile(certServiceAccount),
		"--client-ca-file=" + o.certs.CertFile(certCA),
		"--tls-cert-file=" + o.certs.CertFile(certAPIServer),
		"--tls-private-key-file=" + o.certs.KeyFile(certAPIServer),
		"--tls-min-version=VersionTLS13",
		"--proxy-client-cert-file=" + o.certs.CertFile(certFrontProxyClient),
		"--proxy-client-key-file=" + o.certs.KeyFile(certFrontProxyClient),
		"--requestheader-client-ca-file=" + o.certs.CertFile(certFrontProxyCA),
		"--requestheader-allowed-names=" + certFrontProxyClient,
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--shutdown-delay-duration=0s",
	}
}
