package addons

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/hosted"
)

// installerName is the label value of the objects that the commands install.
const installerName = "karmadactl-addons"

// defaultKarmadaKubeconfig is the file that an installation on a host writes.
const defaultKarmadaKubeconfig = "/etc/karmada/karmada-apiserver.config"

// requestTimeout is the time limit of each request.
const requestTimeout = 30 * time.Second

// Names of the clusters in messages.
const (
	hostName    = "the host cluster"
	karmadaName = "the control plane"
)

// session contains the flags of one command, and the clients of its clusters.
type session struct {
	program *command.Program
	// hostFlags selects the host cluster, karmadaFlags the control plane.
	hostFlags, karmadaFlags command.Kubeconfig
	namespace               string
	// cluster is the member that the estimator serves.
	cluster string

	host, karmada client.Client
}

// addFlags adds the flags that all commands for addons have.
func (s *session) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.hostFlags.Path, "kubeconfig", "", "kubeconfig of the host cluster; if empty $KUBECONFIG, else ~/.kube/config")
	s.program.AddContext(cmd, "context", &s.hostFlags.Context, "context of the host cluster in its kubeconfig; the current one if empty", func() string { return s.hostFlags.Path })
	flags.StringVar(&s.karmadaFlags.Path, "karmada-kubeconfig", defaultKarmadaKubeconfig, "kubeconfig of the control plane")
	s.program.AddContext(cmd, "karmada-context", &s.karmadaFlags.Context, "context of the control plane in its kubeconfig; the current one if empty", func() string { return s.karmadaFlags.Path })
	flags.StringVarP(&s.namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the components in the host cluster")
	flags.StringVarP(&s.cluster, "cluster", "C", "", "member that the estimator serves")
	for _, flag := range []string{"kubeconfig", "karmada-kubeconfig"} {
		_ = cmd.MarkFlagFilename(flag)
	}
}

// connectHost creates the client of the host cluster.
func (s *session) connectHost() (err error) {
	s.hostFlags.As = s.program.As
	s.host, err = newClient(s.hostFlags, hostName)
	return err
}

// connectKarmada creates the client of the control plane.
func (s *session) connectKarmada() (err error) {
	s.karmadaFlags.As = s.program.As
	s.karmada, err = newClient(s.karmadaFlags, karmadaName)
	return err
}

func newClient(kubeconfig command.Kubeconfig, cluster string) (client.Client, error) {
	config, err := kubeconfig.Config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cluster, err)
	}
	config.Timeout = requestTimeout
	made, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", cluster, err)
	}
	return made, nil
}

// hostApplier writes the objects of addons in the host cluster.
func (s *session) hostApplier() hosted.Applier {
	return hosted.Applier{API: s.host, Installer: installerName, Cluster: hostName, Progressf: s.program.Messagef}
}

// karmadaApplier writes the objects of addons in the control plane.
func (s *session) karmadaApplier() hosted.Applier {
	return hosted.Applier{API: s.karmada, Installer: installerName, Cluster: karmadaName, Progressf: s.program.Messagef}
}
