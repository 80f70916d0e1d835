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
	"karmada.io/karmada/internal/install/rendering"
)

// argumentPattern is the form of an argument of a component.
var argumentPattern = regexp.MustCompile(`^--[A-Za-z0-9][A-Za-z0-9._-]*(=.*)?$`)

// The range of node ports that Kubernetes allows at all.
const maxPort = 65535

// validate returns every mistake in the flags. Each error names the flag and the remedy.
func (o *initOptions) validate() error {
	var errs []error
	report := func(isValid bool, format string, args ...any) {
		if !isValid {
			errs = append(errs, command.NewUsageError(format, args...))
		}
	}
	report(len(validation.IsDNS1123Label(o.namespace)) == 0, "--namespace %q: it must be the name of a namespace", o.namespace)
	report(len(validation.IsDNS1123Subdomain(o.domain)) == 0, "--host-cluster-domain %q: it must be a DNS domain such as cluster.local", o.domain)
	report(o.port > 0 && o.port <= maxPort, "--port %d: it must be a node port, normally from 30000 to 32767", o.port)
	report(o.waitSeconds >= 0, "--wait-component-ready-timeout %d: it must be at least 0 seconds", o.waitSeconds)
	report(o.dryRun || o.output == "", "--output %s: it needs --dry-run", o.output)
	report(slices.Contains([]string{"", "yaml", "json"}, o.output), "--output %s: use yaml or json", o.output)
	report(o.advertiseAddress == "" || net.ParseIP(o.advertiseAddress) != nil, "--karmada-apiserver-advertise-address %q: it must be an IP address", o.advertiseAddress)
	errs = append(errs, o.certificates.validate(), o.images.validate(), o.etcd.validate())
	for _, row := range componentRows {
		errs = append(errs, o.components[row.key].validate(row))
		_, needsGate := failoverFlags[row.key]
		report(!o.failover || !needsGate || !o.components[row.key].setsOtherGates(), "--%s-extra-args: its --feature-gates replaces the gate that --failover sets: add %s=true to it", row.flag, failoverGate)
	}
	return errors.Join(errs...)
}

// setsOtherGates reports whether the arguments of a component set feature gates without the gate
// Failover.
func (c *componentOptions) setsOtherGates() bool {
	return slices.ContainsFunc(joinArguments(c.extraArgs), func(argument string) bool {
		return strings.HasPrefix(argument, "--feature-gates=") && !strings.Contains(argument, failoverGate+"=")
	})
}

func (c *certificateOptions) validate() error {
	var errs []error
	for _, address := range splitList(c.externalIP) {
		if net.ParseIP(address) == nil {
			errs = append(errs, command.NewUsageError("--cert-external-ip %q: it must be an IP address", address))
		}
	}
	for _, name := range splitList(c.externalDNS) {
		if len(validation.IsDNS1123Subdomain(name))*len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			errs = append(errs, command.NewUsageError("--cert-external-dns %q: it must be a DNS name", name))
		}
	}
	if (c.caCertFile == "") != (c.caKeyFile == "") {
		errs = append(errs, command.NewUsageError("--ca-cert-file and --ca-key-file belong together: set both, or none"))
	}
	if c.validity <= 0 {
		errs = append(errs, command.NewUsageError("--cert-validity-period %s: it must be greater than 0", c.validity))
	}
	return errors.Join(errs...)
}

func (i *imageOptions) validate() error {
	var errs []error
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, i.pullPolicy) {
		errs = append(errs, command.NewUsageError("--image-pull-policy %q: use Always, IfNotPresent or Never", i.pullPolicy))
	}
	if !slices.Contains([]string{"", "cn", "global"}, i.mirrorCountry) {
		errs = append(errs, command.NewUsageError("--kube-image-mirror-country %q: use cn or global, or set --kube-image-registry", i.mirrorCountry))
	}
	for _, flag := range []struct{ name, registry string }{
		{"private-image-registry", i.registry}, {"kube-image-registry", i.kubeRegistry},
	} {
		if err := rendering.ValidateRegistry(flag.registry); flag.registry != "" && err != nil {
			errs = append(errs, command.NewUsageError("--%s %q: %w", flag.name, flag.registry, err))
		}
	}
	return errors.Join(errs...)
}

func (e *etcdOptions) validate() error {
	if external := &e.external; external.servers != "" {
		if (external.certFile == "") != (external.keyFile == "") {
			return command.NewUsageError("--external-etcd-client-cert-path and --external-etcd-client-key-path belong together: set both")
		}
		if external.certFile == "" || external.caFile == "" {
			return command.NewUsageError("--external-etcd-servers needs --external-etcd-ca-cert-path, --external-etcd-client-cert-path and --external-etcd-client-key-path")
		}
		return nil
	}
	errs := []error{e.componentOptions.validate(etcdRow)}
	switch e.storageMode {
	case storageEmptyDir:
	case storageHostPath:
		if e.replicas != 1 {
			errs = append(errs, command.NewUsageError("--etcd-replicas %d: the storage mode hostPath has one replica: use --etcd-storage-mode=PVC for more", e.replicas))
		}
		if e.dataPath == "" || e.dataPath[0] != '/' {
			errs = append(errs, command.NewUsageError("--etcd-data %q: the storage mode hostPath needs an absolute path", e.dataPath))
		}
	case storageClaim:
		if e.storageClass == "" {
			errs = append(errs, command.NewUsageError("--storage-classes-name is missing: the storage mode PVC needs a StorageClass"))
		}
		if _, err := resource.ParseQuantity(e.claimSize); err != nil {
			errs = append(errs, command.NewUsageError("--etcd-pvc-size %q: it must be a quantity such as 10Gi", e.claimSize))
		}
	default:
		errs = append(errs, command.NewUsageError("--etcd-storage-mode %q: use emptyDir, hostPath or PVC", e.storageMode))
	}
	if !slices.Contains([]int32{1, 3}, e.replicas) {
		errs = append(errs, command.NewUsageError("--etcd-replicas %d: use 1 or 3, because etcd needs a majority of its members", e.replicas))
	}
	return errors.Join(errs...)
}

func (c *componentOptions) validate(row componentRow) error {
	var errs []error
	if c.replicas < 1 {
		errs = append(errs, command.NewUsageError("--%s-replicas %d: it must be at least 1", row.flag, c.replicas))
	}
	if err := rendering.ValidateImage(c.image); c.image != "" && c.image != defaultImage() && err != nil {
		errs = append(errs, command.NewUsageError("--%s-image %q: %w", row.flag, c.image, err))
	}
	for _, argument := range joinArguments(c.extraArgs) {
		if !argumentPattern.MatchString(argument) {
			errs = append(errs, command.NewUsageError("--%s-extra-args %q: an argument has the form --key or --key=value", row.flag, argument))
		}
	}
	return errors.Join(errs...)
}
