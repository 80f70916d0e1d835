package addons

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
)

// installerName is the InstalledByLabel of the objects that these commands install.
const installerName = "karmadactl-addons"

// defaultKarmadaKubeconfig is the kubeconfig that an installation writes on its machine.
const defaultKarmadaKubeconfig = "/etc/karmada/karmada-apiserver.config"

// requestTimeout limits each request.
const requestTimeout = 30 * time.Second

// Names of the clusters in messages.
const (
	hostName    = install.HostName
	karmadaName = install.KarmadaName
)

// session contains a command's flags and the clients for its clusters.
type session struct {
	program *command.Program
	// hostFlags selects the host cluster and the namespace, and karmadaFlags the control plane.
	hostFlags    command.Host
	karmadaFlags command.Kubeconfig
	// cluster is the member that the estimator serves.
	cluster string

	host, karmada client.Client
}

// addFlags adds the flags that all addon commands have.
func (s *session) addFlags(cmd *cobra.Command) {
	s.hostFlags.AddFlags(s.program, cmd, "components")
	flags := cmd.Flags()
	flags.StringVar(&s.karmadaFlags.Path, "karmada-kubeconfig", defaultKarmadaKubeconfig,
		"kubeconfig of the control plane. Without this flag and this file, the certificates of the installation in the host cluster are used")
	_ = cmd.MarkFlagFilename("karmada-kubeconfig")
	s.program.AddContext(cmd, "karmada-context", &s.karmadaFlags.Context,
		"context of the control plane in its kubeconfig; the current one if empty", func() string { return s.karmadaFlags.Path })
	flags.StringVarP(&s.cluster, "cluster", "C", "", "member that the estimator serves")
}

// connectHost creates the client for the host cluster.
func (s *session) connectHost() (err error) {
	s.hostFlags.As = s.program.As
	config, err := s.hostFlags.Config()
	if err != nil {
		return fmt.Errorf("%s: %w", hostName, err)
	}
	s.host, err = newClient(config, hostName)
	return err
}

// connectKarmada creates the client for the control plane.
func (s *session) connectKarmada(ctx context.Context) error {
	config, err := s.karmadaConfig(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", karmadaName, err)
	}
	s.karmada, err = newClient(config, karmadaName)
	return err
}

// karmadaConfig returns the client configuration for the control plane. Without flags and without the
// default file, it uses the certificates that the installation stores in the host cluster.
func (s *session) karmadaConfig(ctx context.Context) (*rest.Config, error) {
	s.karmadaFlags.As = s.program.As
	config, err := s.karmadaFlags.Config()
	if err == nil || s.karmadaFlags.Path != defaultKarmadaKubeconfig || s.karmadaFlags.Context != "" {
		return config, err
	}
	if _, statErr := os.Stat(defaultKarmadaKubeconfig); !errors.Is(statErr, fs.ErrNotExist) {
		return nil, err
	}
	host, err := s.hostFlags.Config()
	if err != nil {
		return nil, err
	}
	installed, err := install.Open(ctx, install.Options{Host: host}, s.hostFlags.Namespace)
	if err == nil {
		config, err = installed.ConnectKarmada(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no kubeconfig %s, and the certificates cannot be read from %s: %w: set the kubeconfig with --karmada-kubeconfig", defaultKarmadaKubeconfig, hostName, err)
	}
	config.Impersonate = host.Impersonate
	return config, nil
}

func newClient(config *rest.Config, cluster string) (client.Client, error) {
	config.Timeout = requestTimeout
	made, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", cluster, err)
	}
	return made, nil
}

// hostApplier writes the addons' objects to the host cluster.
func (s *session) hostApplier() install.Applier {
	return install.Applier{API: s.host, Installer: installerName, Cluster: hostName, Progressf: s.program.Messagef}
}

// karmadaApplier writes the addons' objects to the control plane.
func (s *session) karmadaApplier() install.Applier {
	return install.Applier{API: s.karmada, Installer: installerName, Cluster: karmadaName, Progressf: s.program.Messagef}
}
