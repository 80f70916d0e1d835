package installation

import (
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

// argumentPattern matches a component's argument.
var argumentPattern = regexp.MustCompile(`^--[A-Za-z0-9][A-Za-z0-9._-]*(=.*)?$`)

// maxPort is the maximum number of a port.
const maxPort = 65535

// validate returns an error for each invalid flag, which names the flag and the remedy.
func (o *initOptions) validate() error {
	var errs []error
	report := func(isValid bool, format string, args ...any) {
		if !isValid {
			errs = append(errs, command.NewUsageError(format, args...))
		}
	}
	server := &o.Components.KarmadaAPIServer
	report(len(validation.IsDNS1123Label(o.hostFlags.Namespace)) == 0, "--namespace %q: it must be the name of a namespace",
		o.hostFlags.Namespace)
	report(len(validation.IsDNS1123Subdomain(o.HostCluster.Domain)) == 0,
		"--host-cluster-domain %q: it must be a DNS domain such as cluster.local", o.HostCluster.Domain)
	report(server.Networking.Port > 0 && server.Networking.Port <= maxPort, "--port %d: it must be a node port, normally from 30000 to 32767",
		server.Networking.Port)
	report(*o.WaitComponentReadyTimeout >= 0, "--wait-component-ready-timeout %d: it must be at least 0 seconds", *o.WaitComponentReadyTimeout)
	report(o.dryRun || o.output == "", "--output %s: it needs --dry-run", o.output)
	report(slices.Contains([]string{"", "yaml", "json"}, o.output), "--output %s: use yaml or json", o.output)
	report(server.AdvertiseAddress == "" || net.ParseIP(server.AdvertiseAddress) != nil,
		"--karmada-apiserver-advertise-address %q: it must be an IP address", server.AdvertiseAddress)
	errs = append(errs, o.Certificates.validate(), o.Images.validate(), o.Etcd.validate())
	rows := o.componentRows()
	if !o.Etcd.isExternal() {
		rows = append(rows, o.etcdRow())
	}
	for _, row := range rows {
		errs = append(errs, row.validate())
		_, needsGate := failoverFlags[row.key]
		report(!o.failover || !needsGate || !row.setsOtherGates(),
			"--%s-extra-args: its --feature-gates replaces the gate that --failover sets: add %s=true to it", row.flag, failoverGate)
	}
	return errors.Join(errs...)
}

// setsOtherGates reports whether the component's arguments set feature gates, but not the gate Failover.
func (c *component) setsOtherGates() bool {
	return slices.ContainsFunc(c.arguments(), func(argument string) bool {
		return strings.HasPrefix(argument, "--feature-gates=") && !strings.Contains(argument, failoverGate+"=")
	})
}

func (c *certificateOptions) validate() error {
	var errs []error
	for _, address := range c.ExternalIP {
		if net.ParseIP(address) == nil {
			errs = append(errs, command.NewUsageError("--cert-external-ip %q: it must be an IP address", address))
		}
	}
	for _, name := range c.ExternalDNS {
		if len(validation.IsDNS1123Subdomain(name))*len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			errs = append(errs, command.NewUsageError("--cert-external-dns %q: it must be a DNS name", name))
		}
	}
	if (c.CACertFile == "") != (c.CAKeyFile == "") {
		errs = append(errs, command.NewUsageError("--ca-cert-file and --ca-key-file belong together: set both, or none"))
	}
	if c.ValidityPeriod.Duration <= 0 {
		errs = append(errs, command.NewUsageError("--cert-validity-period %s: it must be greater than 0", c.ValidityPeriod.Duration))
	}
	return errors.Join(errs...)
}

func (i *imageOptions) validate() error {
	var errs []error
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, i.ImagePullPolicy) {
		errs = append(errs, command.NewUsageError("--image-pull-policy %q: use Always, IfNotPresent or Never", i.ImagePullPolicy))
	}
	if !slices.Contains([]string{"", "cn", "global"}, i.KubeImageMirrorCountry) {
		errs = append(errs, command.NewUsageError("--kube-image-mirror-country %q: use cn or global, or set --kube-image-registry",
			i.KubeImageMirrorCountry))
	}
	for _, flag := range []struct{ name, registry string }{
		{"private-image-registry", i.PrivateRegistry.Registry}, {"kube-image-registry", i.KubeImageRegistry},
	} {
		if err := rendering.ValidateRegistry(flag.registry); flag.registry != "" && err != nil {
			errs = append(errs, command.NewUsageError("--%s %q: %w", flag.name, flag.registry, err))
		}
	}
	return errors.Join(errs...)
}

func (e *etcdOptions) validate() error {
	if e.isExternal() {
		switch external := &e.External; {
		case (external.CertFile == "") != (external.KeyFile == ""):
			return command.NewUsageError("--external-etcd-client-cert-path and --external-etcd-client-key-path belong together: set both")
		case external.CertFile == "" || external.CAFile == "":
			return command.NewUsageError("--external-etcd-servers needs --external-etcd-ca-cert-path, --external-etcd-client-cert-path and --external-etcd-client-key-path")
		}
		return nil
	}
	var errs []error
	local := &e.Local
	switch local.StorageMode {
	case storageEmptyDir:
	case storageHostPath:
		if *local.Replicas != 1 {
			errs = append(errs, command.NewUsageError("--etcd-replicas %d: the storage mode hostPath has one replica: use --etcd-storage-mode=PVC for more", *local.Replicas))
		}
		if local.DataPath == "" || local.DataPath[0] != '/' {
			errs = append(errs, command.NewUsageError("--etcd-data %q: the storage mode hostPath needs an absolute path", local.DataPath))
		}
	case storageClaim:
		if local.StorageClassesName == "" {
			errs = append(errs, command.NewUsageError("--storage-classes-name is missing: the storage mode PVC needs a StorageClass"))
		}
		if _, err := resource.ParseQuantity(local.PVCSize); err != nil {
			errs = append(errs, command.NewUsageError("--etcd-pvc-size %q: it must be a quantity such as 10Gi", local.PVCSize))
		}
	default:
		errs = append(errs, command.NewUsageError("--etcd-storage-mode %q: use emptyDir, hostPath or PVC", local.StorageMode))
	}
	if !slices.Contains([]int32{1, 3}, *local.Replicas) {
		errs = append(errs, command.NewUsageError("--etcd-replicas %d: use 1 or 3, because etcd needs a majority of its members",
			*local.Replicas))
	}
	return errors.Join(errs...)
}

func (c componentRow) validate() error {
	var errs []error
	if *c.Replicas < 1 {
		errs = append(errs, command.NewUsageError("--%s-replicas %d: it must be at least 1", c.flag, *c.Replicas))
	}
	if err := rendering.ValidateImage(c.image()); c.image() != "" && c.image() != install.DefaultImage() && err != nil {
		errs = append(errs, command.NewUsageError("--%s-image %q: %w", c.flag, c.image(), err))
	}
	for _, argument := range c.arguments() {
		if !argumentPattern.MatchString(argument) {
			errs = append(errs, command.NewUsageError("--%s-extra-args %q: an argument has the form --key or --key=value", c.flag, argument))
		}
	}
	return errors.Join(errs...)
}
