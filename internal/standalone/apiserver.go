package standalone

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"karmada.io/karmada/internal/extensionserver"
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

// apiServerOptions configure one kube-apiserver.
type apiServerOptions struct {
	certs    pki.Dir
	listener net.Listener
	// flags are added to the flags that every cluster sets.
	flags     []string
	admission []AdmissionPlugin
	// metrics is the API of resource metrics. nil means that the API server does not serve it.
	metrics *simulatedMetrics
}

// apiServer is a running kube-apiserver that clients of this process can call without a network
// connection.
type apiServer struct {
	*server
	handler http.Handler
	// token is the bearer token of clients of this process.
	token string
}

// startAPIServer runs a kube-apiserver on an open listener.
func startAPIServer(ctx context.Context, o apiServerOptions) (*apiServer, error) {
	s := options.NewServerRunOptions()
	for _, plugin := range o.admission {
		plugin.Register(s.Admission.GenericAdmission.Plugins)
		s.Admission.GenericAdmission.RecommendedPluginOrder = append([]string{plugin.Name},
			s.Admission.GenericAdmission.RecommendedPluginOrder...)
	}
	if err := parseFlags("kube-apiserver", s.Flags(), append(apiServerFlags(o), o.flags...)); err != nil {
		return nil, err
	}
	s.SecureServing.Listener = o.listener
	s.SecureServing.BindPort = ListenerPort(o.listener)
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.SetFallback(); err != nil {
		return nil, fmt.Errorf("setting the feature gates of kube-apiserver: %w", err)
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing the options of kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("validating the options of kube-apiserver: %w", errs[0])
	}
	return runAPIServer(ctx, completed, o.metrics)
}

// runAPIServer starts kube-apiserver in the same way as the kube-apiserver program, but keeps a
// reference to the server.
func runAPIServer(ctx context.Context, completed options.CompletedOptions, metrics *simulatedMetrics) (*apiServer, error) {
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	// Disable the storage monitors. All API servers in a process share one metrics registry, which would keep
	// only the last API server's monitor. If that API server's etcd were stopped, each scrape would wait for
	// the monitor's timeout.
	etcdmetrics.SetStorageMonitorGetter(func() ([]etcdmetrics.Monitor, error) { return nil, nil })
	setCompiledVersion(config)
	published := &config.KubeAPIs.ControlPlane.ClusterAuthenticationInfo
	extensionserver.PollCertificates(config.KubeAPIs.ControlPlane.Generic.SecureServing, &published.ClientCA, &published.RequestHeaderCA)
	serveAllMetrics(config.Aggregator.GenericConfig)
	if metrics != nil {
		describeMetrics(config.Aggregator.GenericConfig, metrics)
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("completing the configuration of kube-apiserver: %w", err)
	}
	chain, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, fmt.Errorf("creating kube-apiserver: %w", err)
	}
	if metrics != nil {
		if err := metrics.Install(chain.GenericAPIServer); err != nil {
			return nil, err
		}
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	return &apiServer{
		server:  startServer(ctx, "kube-apiserver", prepared.Run),
		handler: chain.GenericAPIServer.Handler,
		token:   chain.GenericAPIServer.LoopbackClientConfig.BearerToken,
	}, nil
}

// serveAllMetrics makes an API server serve all metrics of the process, including those of Karmada's
// components, to clients that may read the path of its metrics.
func serveAllMetrics(config *genericapiserver.RecommendedConfig) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, completed *genericapiserver.Config) http.Handler {
		return build(ServeAllMetrics(handler), completed)
	}
}

// describeMetrics adds the schemas of resource metrics to the schemas of an API server.
func describeMetrics(config *genericapiserver.RecommendedConfig, metrics *simulatedMetrics) {
	own := config.OpenAPIV3Config.GetDefinitions
	all := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		definitions := own(ref)
		maps.Copy(definitions, metrics.Definitions(ref))
		return definitions
	}
	config.OpenAPIConfig.GetDefinitions, config.OpenAPIV3Config.GetDefinitions = all, all
}

func apiServerFlags(o apiServerOptions) []string {
	host, _, _ := net.SplitHostPort(o.listener.Addr().String())
	return []string{
		"--bind-address=" + host,
		"--advertise-address=" + host,
		// Disable the reconciler that publishes the server's address as an endpoint of the Service kubernetes.
		// The address may be a loopback address, which is not allowed in endpoints.
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
