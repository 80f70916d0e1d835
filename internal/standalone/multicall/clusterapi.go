package multicall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/apiservers"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/standalone"
)

const (
	// readyTimeout is how long the API server may take to become ready, for example because etcd
	// is not available yet. Then the process ends.
	readyTimeout      = 5 * time.Minute
	readyPollInterval = 200 * time.Millisecond
)

// clusterAPI serves the Cluster API in an API server's process. It listens on loopback, and its only client
// is the API server's aggregation layer.
type clusterAPI struct {
	listener net.Listener
	karmada  *rest.Config
	options  *aggregated.Options
}

// newClusterAPI opens the listener and makes the aggregation layer send requests for the Cluster
// API to the listener. It returns nil if the flags do not ask for the Cluster API.
func (k *karmadaOptions) newClusterAPI(ctx context.Context, config *app.Config) (*clusterAPI, error) {
	if !k.ClusterAPI {
		return nil, nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(standalone.Loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("opening a port for the Cluster API: %w", err)
	}
	karmada := config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig
	options, err := k.clusterAPIOptions(config, karmada, listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	extra := &config.Aggregator.ExtraConfig
	extra.ServiceResolver = resolver{ServiceResolver: extra.ServiceResolver, address: listener.Addr().String()}
	return &clusterAPI{listener: listener, karmada: karmada, options: options}, nil
}

// clusterAPIOptions returns the server's options. Its etcd is the etcd of the API server.
func (k *karmadaOptions) clusterAPIOptions(config *app.Config, karmada *rest.Config, listener net.Listener) (*aggregated.Options, error) {
	certFile, keyFile := k.ClusterAPICert, k.ClusterAPIKey
	if certFile == "" {
		pair := config.Options.SecureServing.ServerCert.CertKey
		certFile, keyFile = pair.CertFile, pair.KeyFile
	}
	server := apiservers.AggregatedInProcess{Reviewer: k.newReviewer(), Agents: k.Agents}
	options, err := server.NewOptions(programs.ControlPlane{Karmada: karmada, Listener: listener, CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		return nil, err
	}
	options.Gates = k.gates
	options.Server.Etcd.StorageConfig.Transport = config.Options.Etcd.StorageConfig.Transport
	if k.Admission {
		k.wrapWebhooks(options.Server.Admission)
		return options, nil
	}
	// The webhook reviews Clusters.
	options.Server.Admission.DisablePlugins = append(options.Server.Admission.DisablePlugins, admission.PluginName)
	return options, nil
}

// run waits for the API server, which authenticates the requests, and serves until ctx ends.
func (c *clusterAPI) run(ctx context.Context) error {
	if err := awaitReady(ctx, c.karmada); err != nil {
		_ = c.listener.Close() // no server uses it
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process ends, for its own reason
		}
		return fmt.Errorf("starting the Cluster API: %w", err)
	}
	server, err := aggregated.New(ctx, c.options)
	if err != nil {
		_ = c.listener.Close()
		return fmt.Errorf("starting the Cluster API: %w", err)
	}
	return server.Run(ctx)
}

// awaitReady waits until the API server is ready.
func awaitReady(ctx context.Context, karmada *rest.Config) error {
	client, err := kubernetes.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyPollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for /readyz of the API server: %w", errors.Join(err, last))
	}
	return nil
}

// resolver sends requests for the Service of the Cluster API to an address.
type resolver struct {
	aggregator.ServiceResolver
	address string
}

// ResolveEndpoint implements aggregator.ServiceResolver.
func (r resolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if namespace == clusterv1alpha1.NamespaceKarmadaSystem && name == aggregated.ServiceName {
		return &url.URL{Scheme: "https", Host: r.address}, nil
	}
	return r.ServiceResolver.ResolveEndpoint(namespace, name, port) // callers compare this error
}
