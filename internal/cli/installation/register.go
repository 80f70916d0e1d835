package installation

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

const (
	// serverPort is the port of an aggregated API server's Service in the host cluster.
	serverPort = 443
	// registerTimeout limits the wait for a registered server's APIs.
	registerTimeout = 5 * time.Minute
	// registerRequestTimeout limits each request.
	registerRequestTimeout = 30 * time.Second
)

// registerOptions are the flags of the steps that register an aggregated API server in the control plane and
// remove its registration.
type registerOptions struct {
	kubeconfig, caFile, server, host, systemNamespace string
}

// newRegistration returns the commands "register" and "unregister".
func newRegistration(program *command.Program, steps *stepOptions) []*cobra.Command {
	o := &registerOptions{}
	var commands []*cobra.Command
	for _, row := range []struct {
		use, short string
		run        func(context.Context, *command.Program, *stepOptions) error
	}{
		{"register", "Register an aggregated API server in the control plane", o.register},
		{"unregister", "Remove the registration of an aggregated API server", o.unregister},
	} {
		cmd := &cobra.Command{Use: row.use, Short: row.short, Args: command.NoArguments, RunE: func(cmd *cobra.Command, _ []string) error {
			return row.run(cmd.Context(), program, steps)
		}}
		flags := cmd.Flags()
		flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the control plane")
		flags.StringVar(&o.caFile, "ca-file", "", "file of the certificate authority of the server")
		flags.StringVar(&o.server, "server", "", "name of the Service of the server in the control plane")
		flags.StringVar(&o.host, "host", "", "DNS name of the server in the host")
		flags.StringVar(&o.systemNamespace, "system-namespace", clusterv1alpha1.NamespaceKarmadaSystem,
			"namespace of the components in the control plane")
		commands = append(commands, cmd)
	}
	return commands
}

func (o *registerOptions) register(ctx context.Context, program *command.Program, steps *stepOptions) error {
	objects, err := o.objects(steps)
	if err != nil {
		return err
	}
	config, applier, err := o.connect(program)
	if err != nil {
		return err
	}
	if _, err := applier.Apply(ctx, objects...); err != nil {
		return err
	}
	return install.AwaitAPIServices(ctx, config, registerTimeout, install.APIServiceNames(objects)...)
}

func (o *registerOptions) unregister(ctx context.Context, program *command.Program, steps *stepOptions) error {
	objects, err := o.objects(steps)
	if err != nil {
		return err
	}
	_, applier, err := o.connect(program)
	if err != nil {
		return err
	}
	return applier.Delete(ctx, objects...)
}

// objects returns the objects that register the server.
func (o *registerOptions) objects(steps *stepOptions) ([]client.Object, error) {
	ca, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority, see --ca-file: %w", err)
	}
	return install.ServerObjects(rendering.Installation{
		Release: steps.release, Namespace: steps.namespace, Values: values{"systemNamespace": o.systemNamespace},
	}, o.server, rendering.Address{Host: o.host, Port: serverPort}, ca)
}

func (o *registerOptions) connect(program *command.Program) (*rest.Config, install.Applier, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, install.Applier{}, fmt.Errorf("reading the kubeconfig of the control plane, see --kubeconfig: %w", err)
	}
	config.Timeout = registerRequestTimeout
	api, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, install.Applier{}, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	return config, install.Applier{API: api, Installer: install.InstallationManager, Cluster: "the control plane",
		Progressf: newDetails(program)}, nil
}
