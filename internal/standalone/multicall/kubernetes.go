package multicall

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/logs/json"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/fifo" // registers the metrics of named informers, which only programs of Kubernetes have
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"karmada.io/karmada/internal/programs/command"
)

func runKarmadaAPIServer() int { return runKubernetes(newKarmadaAPIServerCommand) }

func runKubeAPIServer() int { return runKubernetes(kubeapiserver.NewAPIServerCommand) }

func runKubeControllerManager() int {
	return runKubernetes(kubecontrollermanager.NewControllerManagerCommand)
}

// runKubernetes runs a program of Kubernetes with the settings that its main package adds to its
// command.
func runKubernetes(newCommand func() *cobra.Command) int {
	if err := keepOnlyVersionFlag(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return command.Failure
	}
	// The main packages of Kubernetes register this format when they are linked. Then all programs
	// of this binary would have the format and its flags.
	if err := logsapi.RegisterLogFormat(logsapi.JSONLogFormat, json.Factory{}, logsapi.LoggingBetaOptions); err != nil {
		fmt.Fprintln(os.Stderr, "error: registering a log format:", err)
		return command.Failure
	}
	registerKubernetesMetrics()
	return cli.Run(newCommand())
}

// keepOnlyVersionFlag removes the flags that linked libraries added to the global flag set, because
// cobra adds these flags to the flags of each program. The programs of Kubernetes expect their flag
// --version in this set.
func keepOnlyVersionFlag() error {
	version := pflag.CommandLine.Lookup("version")
	if version == nil {
		return fmt.Errorf("the flags of %s: no library defines --version", os.Args[0])
	}
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	pflag.CommandLine.AddFlag(version)
	return nil
}
