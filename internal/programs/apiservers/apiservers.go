// Package apiservers runs the aggregated API servers of Karmada, each as a separate program or in the
// process of a control plane: karmada-aggregated-apiserver serves Clusters, and karmada-search searches
// and proxies the objects of all member clusters.
//
// A program stores its objects in any etcd, behind the aggregation layer of any kube-apiserver. All
// replicas serve requests, because all state is in etcd. Each replica of karmada-search has its own
// cache, and only the replica that holds a Lease writes statuses and writes to OpenSearch.
package apiservers

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/extensionserver"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// Connect sets the client configuration for the Karmada API server. The rate of requests is limited only if a
// flag sets a limit, because API servers protect themselves.
func (p *Program[S]) Connect() error {
	options, connection := p.Server.Common(), flags.Connection{}
	if core := options.Server.CoreAPI; core != nil {
		connection.Kubeconfig = core.CoreAPIKubeconfigPath
	}
	karmada, err := connection.Config(p.name)
	if err != nil {
		return fmt.Errorf("loading the client configuration of the kube-apiserver: %w", err)
	}
	options.Karmada = karmada
	if len(flags.GivenFlags(p.flags, "kube-api-qps", "kube-api-burst")) == 0 {
		options.KubeAPIQPS = -1
	}
	return nil
}

// UseControlPlane makes a server part of a control plane in the same process: it sets the client
// configuration for the Karmada API server, etcd, the listener and the serving certificate.
func UseControlPlane(options *extensionserver.Options, control programs.ControlPlane) error {
	options.Karmada, options.KubeAPIQPS = control.Karmada, -1
	serving := options.Server.SecureServing
	serving.Listener = control.Listener
	serving.ServerCert.CertKey.CertFile, serving.ServerCert.CertKey.KeyFile = control.CertFile, control.KeyFile
	return options.UseEtcd(control.EtcdFlags)
}

// runWithStorage runs a server until ctx ends, or until the storage of the control plane is replaced. Then the
// program must restart, because the server's storage cache cannot be reset.
func runWithStorage(ctx context.Context, karmada *rest.Config, server func(context.Context) error) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering types: %w", err)
	}
	reader, err := client.New(karmada, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client of the control plane: %w", err)
	}
	watch := epoch.New(epoch.Options{Reader: reader})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watch.Start(ctx) })
	group.Go(func() error { return server(ctx) })
	return group.Wait()
}
