package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/cli/certs"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/version"
)

// jobTimeout limits the wait for one workload's Pods in a Job, which has a deadline of its own.
const jobTimeout = 5 * time.Minute

// stepOptions are the flags of the steps that the chart's Jobs run in the host cluster.
type stepOptions struct {
	release, namespace, valuesFile string
	// hasExternalEtcd means that the release does not run etcd.
	hasExternalEtcd bool
}

// NewSteps returns the hidden command "installation", whose subcommands the chart's Jobs run.
func NewSteps(program *command.Program) *cobra.Command {
	o := &stepOptions{}
	cmd := &cobra.Command{
		Use:   "installation",
		Short: "Run one step of an installation in the host cluster",
		Long:  "Run one step of an installation in the host cluster. Jobs of the chart run these commands with the values of their release.",
		Example: program.Examples(`
			# Renew the certificates of a release, in a Job of the host
			{{program}} installation certificates --release=karmada --namespace=karmada --values=values.yaml`),
		Hidden: true,
		Args:   command.NoArguments,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, row := range []struct {
		use, short string
		run        func(context.Context, *install.Installer) error
	}{
		{"setup", "Issue the certificates, and set up the objects inside the control plane",
			func(ctx context.Context, i *install.Installer) error {
				if err := i.RenewCertificates(ctx); err != nil {
					return err
				}
				return i.SetUpControlPlane(ctx)
			}},
		{"certificates", "Issue the certificates that are missing or due", func(ctx context.Context, i *install.Installer) error {
			return i.RenewCertificates(ctx)
		}},
	} {
		cmd.AddCommand(&cobra.Command{Use: row.use, Short: row.short, Args: command.NoArguments,
			RunE: func(cmd *cobra.Command, _ []string) error {
				installer, err := o.newInstaller(program)
				if err != nil {
					return err
				}
				defer installer.Close()
				return row.run(cmd.Context(), installer)
			}})
	}
	remove := &cobra.Command{Use: "remove", Short: "Delete the certificates of a release", Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := inHostConfig()
			if err != nil {
				return err
			}
			return install.DeleteCertificates(cmd.Context(), config, o.release, o.namespace, o.hasExternalEtcd, newDetails(program))
		}}
	remove.Flags().BoolVar(&o.hasExternalEtcd, "external-etcd", false,
		"the release has no etcd of its own, so the Secret of an etcd belongs to another release")
	cmd.AddCommand(remove)
	cmd.AddCommand(newRegistration(program, o)...)
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.release, "release", rendering.DefaultRelease, "name of the release")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the release")
	flags.StringVar(&o.valuesFile, "values", "", "file with the values of the release")
	return cmd
}

func inHostConfig() (*rest.Config, error) {
	config, err := podenvironment.InCluster()
	if err != nil {
		return nil, fmt.Errorf("reading the service account of the Job: %w", err)
	}
	return config, nil
}

func (o *stepOptions) newInstaller(program *command.Program) (*install.Installer, error) {
	if o.valuesFile == "" {
		return nil, errors.New("--values is missing: it is the file with the values of the release")
	}
	data, err := os.ReadFile(o.valuesFile)
	if err != nil {
		return nil, fmt.Errorf("reading the values of the release: %w", err)
	}
	read := values{}
	if err := yaml.Unmarshal(data, &read); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.valuesFile, err)
	}
	config, err := inHostConfig()
	if err != nil {
		return nil, err
	}
	return install.NewInstaller(install.Options{
		Installation: rendering.Installation{Release: o.release, Namespace: o.namespace, Version: version.Get().GitVersion, Values: read},
		Host:         config, InHost: true, ReadyTimeout: jobTimeout, Step: newSteps(program), Progressf: newDetails(program),
	})
}

// NewCerts returns the command for an installation's certificates.
func NewCerts(program *command.Program) *cobra.Command {
	return certs.New(program, func(ctx context.Context, host command.Host) (certs.Installation, error) {
		config, err := host.Config()
		if err != nil {
			return nil, err
		}
		installed, err := install.Open(ctx, install.Options{
			Host: config, ReadyTimeout: defaultWaitSeconds * time.Second, Step: newSteps(program), Progressf: newDetails(program),
		}, host.Namespace)
		if err != nil {
			return nil, err
		}
		return installed, nil
	})
}
