package standalone

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"karmada.io/karmada/internal/pki"
)

// unthrottledFlags sets client rate limits so high that they are never reached. Instead, API
// priority and fairness limits the requests in the API server.
var unthrottledFlags = []string{"--kube-api-qps=2000", "--kube-api-burst=4000"}

// KarmadaControllers are the controllers of kube-controller-manager that a Karmada control plane
// needs. Workload controllers are excluded, because resource templates must not run in the control
// plane.
var KarmadaControllers = []string{
	"namespace", "garbagecollector", "serviceaccount-token", "ttl-after-finished", "bootstrapsigner",
	"tokencleaner", "csrcleaner", "csrsigning", "clusterrole-aggregation",
}

// memberControllers are the controllers of a simulated member: all default controllers except the
// controller that attaches volumes, because simulated nodes have no volumes to attach and the
// controller watches a directory for its plugins.
var memberControllers = []string{"*", "-persistentvolume-attach-detach-controller"}

// startControllerManager runs the named controllers of kube-controller-manager.
func startControllerManager(ctx context.Context, certs pki.Dir, access inProcessAccess, o Options, controllers []string) (*server, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("creating the options of kube-controller-manager: %w", err)
	}
	args := append([]string{
		"--kubeconfig=" + access.kubeconfig,
		"--cluster-name=" + o.Name,
		"--leader-elect=false",
		"--secure-port=0",
		"--root-ca-file=" + certs.CertFile(certCA),
		// Only this signer is needed, because the clusters have no kubelets. Each signer would watch
		// the files of the CA.
		"--cluster-signing-kube-apiserver-client-cert-file=" + certs.CertFile(certCA),
		"--cluster-signing-kube-apiserver-client-key-file=" + certs.KeyFile(certCA),
		"--service-account-private-key-file=" + certs.KeyFile(certServiceAccount),
		"--use-service-account-credentials=false",
	}, unthrottledFlags...)
	if o.CertificateLifetime > 0 {
		args = append(args, "--cluster-signing-duration="+o.CertificateLifetime.String())
	}
	args = append(args, "--controllers="+strings.Join(controllers, ","))
	sets := s.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err := parseFlags("kube-controller-manager", sets, args); err != nil {
		return nil, err
	}
	config, err := s.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, fmt.Errorf("completing the options of kube-controller-manager: %w", err)
	}
	access.useTransport(config.Kubeconfig)
	config.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(config.Kubeconfig, options.KubeControllerManagerUserAgent))
	if err != nil {
		return nil, fmt.Errorf("creating the client of kube-controller-manager: %w", err)
	}
	return startServer(ctx, "kube-controller-manager", func(ctx context.Context) error {
		// Remove the registration of this controller manager from configz, which is global to the
		// process. Otherwise the next controller manager could not register its configuration.
		defer configz.Delete(app.ConfigzName)
		return app.Run(ctx, config.Complete())
	}), nil
}
