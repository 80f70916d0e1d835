package installation

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/pki"
)

// Default values of flags.
const (
	defaultDataDir     = "/etc/karmada"
	defaultPKIDir      = "/etc/karmada/pki"
	defaultPort        = 32443
	defaultWaitSeconds = 120
)

func (o *initOptions) addFlags(program *command.Program, cmd *cobra.Command) {
	server := &o.Components.KarmadaAPIServer
	o.hostFlags.AddFlags(program, cmd, "components")
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "file with a KarmadaInitConfig, whose fields replace flags")
	flags.StringVar(&o.HostCluster.Domain, "host-cluster-domain", "cluster.local", "DNS domain of the host cluster")
	flags.Int32VarP(&server.Networking.Port, "port", "p", defaultPort, "node port of the API server")
	flags.StringVarP(&o.KarmadaDataPath, "karmada-data", "d", defaultDataDir, "directory for the kubeconfig and examples")
	flags.StringVar(&o.KarmadaPKIPath, "karmada-pki", defaultPKIDir, "directory for a copy of the certificates")
	flags.StringVar(&o.KarmadaCRDs, "crds", "", "file or URL of an archive of CRDs, such as crds.tar.gz; if empty, the CRDs of this program are used")
	o.WaitComponentReadyTimeout = flags.Int("wait-component-ready-timeout", defaultWaitSeconds,
		"seconds to wait for each component; 0 means no limit")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the objects that would be created, and change nothing")
	flags.StringVarP(&o.output, "output", "o", "", "with --dry-run, the format of the objects: yaml or json")
	flags.BoolVar(&o.networkPolicies, "network-policies", false, "allow only the connections that the components need")
	flags.BoolVar(&o.failover, "failover", false,
		"let NoExecute taints of clusters evict workloads: sets the feature gate Failover, and the arguments --enable-no-execute-taint-eviction of karmada-controller-manager and --allow-no-execute-taint-policy of karmada-webhook")
	o.Certificates.addFlags(flags)
	o.Etcd.addFlags(flags)
	o.Images.addFlags(flags)
	for _, row := range append(o.componentRows(), o.etcdRow()) {
		row.addFlags(flags)
	}
	flags.StringVar(&server.AdvertiseAddress, "karmada-apiserver-advertise-address", "",
		"IP address of the API server for clients outside the host; if empty, the address of a control-plane node")
	for _, name := range []string{
		"config", "crds", "ca-cert-file", "ca-key-file", "external-etcd-ca-cert-path", "external-etcd-client-cert-path",
		"external-etcd-client-key-path",
	} {
		_ = cmd.MarkFlagFilename(name)
	}
	for _, name := range []string{"karmada-data", "karmada-pki"} {
		_ = cmd.MarkFlagDirname(name)
	}
}

func (c *certificateOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.CACertFile, "ca-cert-file", "", "certificate of your certificate authority; if empty, a new one is created")
	flags.StringVar(&c.CAKeyFile, "ca-key-file", "", "key of your certificate authority")
	flags.Var(&c.ExternalDNS, "cert-external-dns", "further DNS names of the API server, comma-separated")
	flags.Var(&c.ExternalIP, "cert-external-ip", "further IP addresses of the API server, comma-separated")
	flags.DurationVar(&c.ValidityPeriod.Duration, "cert-validity-period", pki.DefaultLeafLifetime,
		"validity of the certificates, which are renewed before they expire")
}

func (e *etcdOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.Local.StorageMode, "etcd-storage-mode", storageHostPath, "where the data of etcd is: emptyDir, hostPath or PVC")
	flags.StringVar(&e.Local.DataPath, "etcd-data", "/var/lib/karmada-etcd", "directory of a node with the data of etcd, in the mode hostPath")
	flags.StringVar(&e.Local.nodeSelectorFlag, "etcd-node-selector-labels", "",
		"labels of the node of etcd, such as a=b,c=d, in the mode hostPath; if empty, a node is chosen and labeled")
	flags.StringVar(&e.Local.PVCSize, "etcd-pvc-size", "10Gi",
		"size of the volume of etcd, in the mode PVC; at least 1Gi more than the quota of etcd, which is 8Gi by default")
	flags.StringVar(&e.Local.StorageClassesName, "storage-classes-name", "", "StorageClass of the volume of etcd, in the mode PVC")
	flags.Var(&e.External.Endpoints, "external-etcd-servers", "URLs of an external etcd, comma-separated")
	flags.StringVar(&e.External.KeyPrefix, "external-etcd-key-prefix", "", "prefix of the keys in the external etcd")
	flags.StringVar(&e.External.CAFile, "external-etcd-ca-cert-path", "", "certificate authority of the external etcd")
	flags.StringVar(&e.External.CertFile, "external-etcd-client-cert-path", "", "client certificate for the external etcd")
	flags.StringVar(&e.External.KeyFile, "external-etcd-client-key-path", "", "key of the client certificate")
}

func (i *imageOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&i.ImagePullPolicy, "image-pull-policy", "IfNotPresent", "when images are pulled: Always, IfNotPresent or Never")
	flags.StringSliceVar(&i.ImagePullSecrets, "image-pull-secrets", nil, "Secrets with credentials of registries, in the namespace")
	flags.StringVar(&i.PrivateRegistry.Registry, "private-image-registry", "",
		"registry to which you mirrored the image of Karmada, which contains all programs; localhost/karmada for an image that was loaded into the nodes")
	flags.StringVar(&i.KubeImageRegistry, "kube-image-registry", "",
		"registry of upstream images of etcd, kube-apiserver and kube-controller-manager; if empty, the image of Karmada runs them")
	flags.StringVar(&i.KubeImageMirrorCountry, "kube-image-mirror-country", "", "country of a mirror of upstream images: cn or global")
	flags.StringVar(&i.KubeImageTag, "kube-image-tag", "",
		"tag of upstream images of Kubernetes; a tag alone selects the images of registry.k8s.io")
}

// addFlags adds the flags that every component has.
func (c componentRow) addFlags(flags *pflag.FlagSet) {
	image := ""
	if c.kubeImage == "" {
		image = install.DefaultImage()
	}
	flags.StringVar(&c.imageFlag, c.flag+"-image", image, "image of "+c.flag+"; if empty, the image of Karmada")
	c.Replicas = flags.Int32(c.flag+"-replicas", 1, "replicas of "+c.flag)
	flags.StringVar(&c.PriorityClassName, c.flag+"-priority-class", "system-node-critical", "PriorityClass of the Pods of "+c.flag)
	flags.StringSliceVar(&c.extraArgsFlag, c.flag+"-extra-args", nil,
		"further arguments of "+c.flag+", such as --v=4; they replace arguments of the same name")
}

func (o *initOptions) readyTimeout() time.Duration {
	return time.Duration(*o.WaitComponentReadyTimeout) * time.Second
}
