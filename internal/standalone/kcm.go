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

// unthrottled client limits: the API server's priority and fairness decides, not
// its clients.
var unthrottled = []string{"--kube-api-qps=2000", "--kube-api-burst=4000"}

// KarmadaControllers are the controllers of kube-controller-manager that a
// Karmada control plane needs. Workload controllers are left out: templates are
// descriptions, nothing runs where they are stored.
var KarmadaControllers = []string{
	"namespace", "garbagecollector", "serviceaccount-token", "ttl-after-finished", "bootstrapsigner",
	"tokencleaner", "csrcleaner", "csrsigning", "clusterrole-aggregation",
}

// startControllerManager runs the named controllers of kube-controller-manager;
// none means all that are on by default.
func startControllerManager(ctx context.Context, certs pki.Dir, in insider, o Options, controllers []string) (*server, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("making options of kube-controller-manager: %w", err)
	}
	args := append([]string{
		"--kubeconfig=" + in.kubeconfig,
		"--cluster-name=" + o.Name,
		"--leader-elect=false",
		"--secure-port=0",
		"--root-ca-file=" + certs.CertFile(certCA),
		"--cluster-signing-cert-file=" + certs.CertFile(certCA),
		"--cluster-signing-key-file=" + certs.KeyFile(certCA),
		"--service-account-private-key-file=" + certs.KeyFile(certServiceAccount),
		"--use-service-account-credentials=false",
	}, unthrottled...)
	if o.CertificateLifetime > 0 {
		args = append(args, "--cluster-signing-duration="+o.CertificateLifetime.String())
	}
	if len(controllers) > 0 {
		args = append(args, "--controllers="+strings.Join(controllers, ","))
	}
	sets := s.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err := parse("kube-controller-manager", sets, args); err != nil {
		return nil, err
	}
	config, err := s.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, fmt.Errorf("completing options of kube-controller-manager: %w", err)
	}
	in.enter(config.Kubeconfig)
	config.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(config.Kubeconfig, options.KubeControllerManagerUserAgent))
	if err != nil {
		return nil, fmt.Errorf("making client of kube-controller-manager: %w", err)
	}
	return start(ctx, "kube-controller-manager", func(ctx context.Context) error {
		// A process shows the configuration of one, and the next one could not start.
		defer configz.Delete(app.ConfigzName)
		return app.Run(ctx, config.Complete())
	}), nil
}
