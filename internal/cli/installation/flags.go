package installation

import (
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/version"
)

// Defaults of flags.
const (
	defaultDataDir       = "/etc/karmada"
	defaultPKIDir        = "/etc/karmada/pki"
	defaultPort          = 32443
	defaultWaitSeconds   = 120
	defaultPriorityClass = "system-node-critical"
	defaultPullPolicy    = "IfNotPresent"
)

// defaultImage returns the image with all programs of this version.
func defaultImage() string { return rendering.Image(version.Get().ImageTag()) }

// addHostFlags adds the flags that select the host cluster and the namespace.
func addHostFlags(program *command.Program, cmd *cobra.Command, host *command.Kubeconfig, namespace *string) {
	flags := cmd.Flags()
	flags.StringVar(&host.Path, "kubeconfig", "", "kubeconfig of the host cluster; if empty $KUBECONFIG, else ~/.kube/config")
	_ = cmd.MarkFlagFilename("kubeconfig")
	program.AddContext(cmd, "context", &host.Context, "context of the host cluster in its kubeconfig; the current one if empty", func() string { return host.Path })
	flags.StringVarP(namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "namespace of the components in the host cluster")
}

// addFlags adds the flags of init.
func (o *initOptions) addFlags(program *command.Program, cmd *cobra.Command) {
	addHostFlags(program, cmd, &o.hostFlags, &o.namespace)
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "file with a KarmadaInitConfig, whose fields replace flags")
	flags.StringVar(&o.domain, "host-cluster-domain", "cluster.local", "DNS domain of the host cluster")
	flags.Int32VarP(&o.port, "port", "p", defaultPort, "node port of the API server")
	flags.StringVarP(&o.dataDir, "karmada-data", "d", defaultDataDir, "directory for the kubeconfig and examples")
	flags.StringVar(&o.pkiDir, "karmada-pki", defaultPKIDir, "directory for a copy of the certificates")
	flags.StringVar(&o.crds, "crds", "", "file or URL of an archive of CRDs, such as crds.tar.gz; if empty, the CRDs of this program are used")
	flags.IntVar(&o.waitSeconds, "wait-component-ready-timeout", defaultWaitSeconds, "seconds to wait for each component; 0 means no limit")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the objects that would be created, and change nothing")
	flags.StringVarP(&o.output, "output", "o", "", "with --dry-run, the format of the objects: yaml or json")
	flags.BoolVar(&o.networkPolicies, "network-policies", false, "allow only the connections that the components need")
	flags.BoolVar(&o.failover, "failover", false, "let NoExecute taints of clusters evict workloads: sets the feature gate Failover, and the arguments --enable-no-execute-taint-eviction of karmada-controller-manager and --allow-no-execute-taint-policy of karmada-webhook")
	for _, name := range []string{"config", "crds"} {
		_ = cmd.MarkFlagFilename(name)
	}
	for _, name := range []string{"karmada-data", "karmada-pki"} {
		_ = cmd.MarkFlagDirname(name)
	}
	o.addCertificateFlags(cmd)
	o.addEtcdFlags(cmd)
	o.addImageFlags(cmd)
	o.components = map[string]*componentOptions{}
	for _, row := range componentRows {
		o.components[row.key] = &componentOptions{}
		o.components[row.key].addFlags(cmd, row)
	}
	flags.StringVar(&o.advertiseAddress, "karmada-apiserver-advertise-address", "", "IP address of the API server for clients outside the host; if empty, the address of a control-plane node")
}

func (o *initOptions) addCertificateFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.certificates.caCertFile, "ca-cert-file", "", "certificate of your certificate authority; if empty, a new one is created")
	flags.StringVar(&o.certificates.caKeyFile, "ca-key-file", "", "key of your certificate authority")
	flags.StringVar(&o.certificates.externalDNS, "cert-external-dns", "", "further DNS names of the API server, comma-separated")
	flags.StringVar(&o.certificates.externalIP, "cert-external-ip", "", "further IP addresses of the API server, comma-separated")
	flags.DurationVar(&o.certificates.validity, "cert-validity-period", pki.DefaultLeafLifetime, "validity of the certificates, which are renewed before they expire")
	for _, name := range []string{"ca-cert-file", "ca-key-file"} {
		_ = cmd.MarkFlagFilename(name)
	}
}

func (o *initOptions) addEtcdFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.etcd.addFlags(cmd, etcdRow)
	flags.StringVar(&o.etcd.storageMode, "etcd-storage-mode", storageHostPath, "where the data of etcd is: emptyDir, hostPath or PVC")
	flags.StringVar(&o.etcd.dataPath, "etcd-data", "/var/lib/karmada-etcd", "directory of a node with the data of etcd, in the mode hostPath")
	flags.StringVar(&o.etcd.nodeSelectorLabels, "etcd-node-selector-labels", "", "labels of the node of etcd, such as a=b,c=d, in the mode hostPath; if empty, a node is chosen and labeled")
	flags.StringVar(&o.etcd.claimSize, "etcd-pvc-size", "10Gi", "size of the volume of etcd, in the mode PVC; at least 1Gi more than the quota of etcd, which is 8Gi by default")
	flags.StringVar(&o.etcd.storageClass, "storage-classes-name", "", "StorageClass of the volume of etcd, in the mode PVC")
	external := &o.etcd.external
	flags.StringVar(&external.servers, "external-etcd-servers", "", "URLs of an external etcd, comma-separated")
	flags.StringVar(&external.keyPrefix, "external-etcd-key-prefix", "", "prefix of the keys in the external etcd")
	flags.StringVar(&external.caFile, "external-etcd-ca-cert-path", "", "certificate authority of the external etcd")
	flags.StringVar(&external.certFile, "external-etcd-client-cert-path", "", "client certificate for the external etcd")
	flags.StringVar(&external.keyFile, "external-etcd-client-key-path", "", "key of the client certificate")
	for _, name := range []string{"external-etcd-ca-cert-path", "external-etcd-client-cert-path", "external-etcd-client-key-path"} {
		_ = cmd.MarkFlagFilename(name)
	}
}

func (o *initOptions) addImageFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.images.pullPolicy, "image-pull-policy", defaultPullPolicy, "when images are pulled: Always, IfNotPresent or Never")
	flags.StringSliceVar(&o.images.pullSecrets, "image-pull-secrets", nil, "Secrets with credentials of registries, in the namespace")
	flags.StringVar(&o.images.registry, "private-image-registry", "", "registry to which you mirrored the image of Karmada, which contains all programs; localhost/karmada for an image that was loaded into the nodes")
	flags.StringVar(&o.images.kubeRegistry, "kube-image-registry", "", "registry of upstream images of etcd, kube-apiserver and kube-controller-manager; if empty, the image of Karmada runs them")
	flags.StringVar(&o.images.mirrorCountry, "kube-image-mirror-country", "", "country of a mirror of upstream images: cn or global")
	flags.StringVar(&o.images.kubeTag, "kube-image-tag", "", "tag of upstream images of Kubernetes; a tag alone selects the images of registry.k8s.io")
}

// addFlags adds the flags that all components have.
func (c *componentOptions) addFlags(cmd *cobra.Command, row componentRow) {
	flags := cmd.Flags()
	image := ""
	if row.kubeImage == "" {
		image = defaultImage()
	}
	flags.StringVar(&c.image, row.flag+"-image", image, "image of "+row.flag+"; if empty, the image of Karmada")
	flags.Int32Var(&c.replicas, row.flag+"-replicas", 1, "replicas of "+row.flag)
	flags.StringVar(&c.priorityClass, row.flag+"-priority-class", defaultPriorityClass, "PriorityClass of the Pods of "+row.flag)
	flags.StringSliceVar(&c.extraArgs, row.flag+"-extra-args", nil, "further arguments of "+row.flag+", such as --v=4; they replace arguments of the same name")
}

func (o *initOptions) readyTimeout() time.Duration { return time.Duration(o.waitSeconds) * time.Second }
