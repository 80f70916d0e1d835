// Package installation contains the commands that install a control plane in a host cluster and remove it,
// and the installation steps that the chart's Jobs run.
//
// The flags of init become chart values. Package install then renders and applies the chart.
package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/version"
)

// NewInit returns the command "init".
func NewInit(program *command.Program) *cobra.Command {
	o := &initOptions{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install a control plane on a Kubernetes cluster",
		Long: `Install a control plane on a Kubernetes cluster, the host.

The command can be run again: it changes what differs from the flags, and nothing
else. After a failure, the next run continues. The certificates are renewed by the
host before they expire. The command needs no network besides the host, which pulls
one image with all programs. There is no public image: build it and mirror it first.`,
		Example: program.Examples(`
			# Install a control plane on the cluster of the current context
			{{program}} init --private-image-registry=registry.example.com/karmada

			# Show what a second run with another number of replicas would change
			{{program}} init --private-image-registry=registry.example.com/karmada --karmada-apiserver-replicas=3 --dry-run

			# Install three replicas, with the data of etcd in volumes
			{{program}} init --private-image-registry=registry.example.com/karmada --etcd-replicas=3 --etcd-storage-mode=PVC --storage-classes-name=fast \
			  --karmada-apiserver-replicas=3 --karmada-aggregated-apiserver-replicas=3 --karmada-webhook-replicas=3 \
			  --karmada-scheduler-replicas=3 --karmada-controller-manager-replicas=3 --karmada-kube-controller-manager-replicas=3

			# Take all settings from a file
			{{program}} init --private-image-registry=registry.example.com/karmada --config=init.yaml`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.config != "" {
				if err := o.readConfig(o.config); err != nil {
					return err
				}
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), program)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(program, cmd)
	return cmd
}

// run installs the control plane, or prints what it would install.
func (o *initOptions) run(ctx context.Context, program *command.Program) error {
	o.hostFlags.As = program.As
	config, err := o.hostFlags.Config()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = command.QueriesPerSecond, command.Burst
	installer, err := o.newInstaller(ctx, program, config)
	if err != nil {
		return err
	}
	defer installer.Close()
	switch {
	case o.output != "":
		return o.print(ctx, program, installer)
	case o.dryRun:
		return preview(ctx, program, installer)
	}
	for _, dir := range []string{o.KarmadaDataPath, o.KarmadaPKIPath} {
		if err := ensureWritable(dir); err != nil {
			return err
		}
	}
	began := time.Now()
	result, err := installer.Install(ctx)
	if err != nil {
		return err
	}
	if err := o.writeFiles(installer, result); err != nil {
		return err
	}
	return o.report(ctx, program, result, time.Since(began))
}

// newInstaller returns an Installer with the flags' values.
func (o *initOptions) newInstaller(ctx context.Context, program *command.Program, config *rest.Config) (*install.Installer, error) {
	options := install.Options{Host: config, ReadyTimeout: o.readyTimeout(), Step: newSteps(program), Progressf: newDetails(program)}
	var err error
	if options.GivenCA, err = o.Certificates.readAuthority(); err != nil {
		return nil, err
	}
	if options.ExternalEtcd, err = o.Etcd.readExternal(); err != nil {
		return nil, err
	}
	if o.KarmadaCRDs != "" {
		if options.CRDs, err = readCRDArchive(ctx, program, o.KarmadaCRDs); err != nil {
			return nil, err
		}
	}
	host, err := install.ReadHost(ctx, config)
	if err != nil {
		return nil, err
	}
	addresses, err := o.addresses(host)
	if err != nil {
		return nil, err
	}
	if options.EtcdNode, err = o.chooseEtcdNode(host); err != nil {
		return nil, err
	}
	options.Installation = rendering.Installation{Release: rendering.DefaultRelease, Namespace: o.hostFlags.Namespace,
		Version: version.Get().GitVersion}
	if options.Values, err = o.values(addresses); err != nil {
		return nil, err
	}
	return install.NewInstaller(options)
}

// addresses returns the API server's addresses for clients outside the host cluster.
func (o *initOptions) addresses(host *install.Host) ([]string, error) {
	advertised := o.Components.KarmadaAPIServer.AdvertiseAddress
	addresses, err := host.Addresses()
	switch {
	case advertised == "":
		return addresses, err
	case err != nil:
		addresses = nil // the nodes need no address if the flag sets one
	}
	return append([]string{advertised}, addresses...), nil
}

// chooseEtcdNode selects the node that stores etcd's data, unless the flags select one. If the node still
// needs the label, chooseEtcdNode returns the node's name.
func (o *initOptions) chooseEtcdNode(host *install.Host) (string, error) {
	local := &o.Etcd.Local
	if o.Etcd.isExternal() || local.StorageMode != storageHostPath || local.nodeSelectorFlag != "" || local.NodeSelector != nil {
		return "", nil
	}
	node, isLabeled, err := host.EtcdNode()
	if err != nil {
		return "", err
	}
	local.NodeSelector = map[string]string{clusterv1alpha1.EtcdNodeLabel: ""}
	if isLabeled {
		return "", nil
	}
	return node, nil
}

// readAuthority reads the user's certificate authority.
func (c *certificateOptions) readAuthority() (authority pki.GivenAuthority, err error) {
	if c.CACertFile == "" {
		return authority, nil
	}
	if authority.Cert, err = readGiven("--ca-cert-file", c.CACertFile); err != nil {
		return authority, err
	}
	if authority.Key, err = readGiven("--ca-key-file", c.CAKeyFile); err != nil {
		return authority, err
	}
	return authority, authority.Check(time.Now())
}

func readGiven(flag, file string) (pki.Given, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return pki.Given{}, fmt.Errorf("%s: %w", flag, err)
	}
	return pki.Given{Source: flag + " " + file, PEM: data}, nil
}

// readExternal reads the certificates for an external etcd.
func (e *etcdOptions) readExternal() (certificates.Set, error) {
	if !e.isExternal() {
		return nil, nil
	}
	files := certificates.Set{}
	for _, row := range []struct{ flag, path, file string }{
		{"--external-etcd-ca-cert-path", e.External.CAFile, certificates.EtcdCA + ".crt"},
		{"--external-etcd-client-cert-path", e.External.CertFile, certificates.EtcdClient + ".crt"},
		{"--external-etcd-client-key-path", e.External.KeyFile, certificates.EtcdClient + ".key"},
	} {
		data, err := os.ReadFile(row.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.flag, err)
		}
		files[row.file] = data
	}
	return files, nil
}

// newSteps returns a function that runs a step and prints its name, result and duration.
func newSteps(program *command.Program) func(string, func() error) error {
	return func(name string, run func() error) error {
		began := time.Now()
		err := run()
		program.Messagef("%s", program.Style.StepLine(name, time.Since(began), err != nil))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}

// newDetails returns a function that prints one change.
func newDetails(program *command.Program) func(string, ...any) {
	return func(format string, args ...any) { program.Messagef("  "+format, args...) }
}

// preview prints the objects that an installation would write.
func preview(ctx context.Context, program *command.Program, installer *install.Installer) error {
	written, err := installer.Preview(ctx)
	if err != nil {
		return err
	}
	if written == 0 {
		fmt.Fprintln(program.Out, "nothing would change in the host cluster")
		return nil
	}
	fmt.Fprintf(program.Out, "%d objects would change in the host cluster\n", written)
	return nil
}

// ensureWritable creates the directory if necessary, and returns an error if no files can be created in it.
func ensureWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory: %w: choose others with --karmada-data and --karmada-pki", err)
	}
	file, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("creating a file: %w: choose other directories with --karmada-data and --karmada-pki", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
