package installation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/cli/command"
)

// Storage modes of etcd, as values of the flag.
const (
	storageEmptyDir = "emptyDir"
	storageHostPath = "hostPath"
	storageClaim    = "PVC"
)

// initOptions are the flags of init.
type initOptions struct {
	hostFlags       command.Host
	config          string
	dryRun          bool
	output          string
	networkPolicies bool
	// failover lets NoExecute taints evict workloads.
	failover bool

	initSpec
}

// initSpec is the spec of a configuration file. Flags set its fields first; then the file's fields that are
// not empty override them.
type initSpec struct {
	Certificates              certificateOptions `json:"certificates,omitzero"`
	Etcd                      etcdOptions        `json:"etcd,omitzero"`
	HostCluster               hostOptions        `json:"hostCluster,omitzero"`
	Images                    imageOptions       `json:"images,omitzero"`
	Components                componentOptions   `json:"components,omitzero"`
	KarmadaCRDs               string             `json:"karmadaCRDs,omitempty"`
	KarmadaDataPath           string             `json:"karmadaDataPath,omitempty"`
	KarmadaPKIPath            string             `json:"karmadaPKIPath,omitempty"`
	WaitComponentReadyTimeout *int               `json:"waitComponentReadyTimeout,omitempty"`
}

type certificateOptions struct {
	CACertFile     string          `json:"caCertFile,omitempty"`
	CAKeyFile      string          `json:"caKeyFile,omitempty"`
	ExternalDNS    commaList       `json:"externalDNS,omitempty"`
	ExternalIP     commaList       `json:"externalIP,omitempty"`
	ValidityPeriod metav1.Duration `json:"validityPeriod,omitzero"`
}

type etcdOptions struct {
	Local    localEtcd    `json:"local,omitzero"`
	External externalEtcd `json:"external,omitzero"`
}

// isExternal reports whether the control plane uses an external etcd, which the installation does not run.
func (e *etcdOptions) isExternal() bool { return len(e.External.Endpoints) > 0 }

type localEtcd struct {
	component          `json:",inline"`
	DataPath           string            `json:"dataPath,omitempty"`
	NodeSelectorLabels map[string]string `json:"nodeSelectorLabels,omitempty"`
	PVCSize            string            `json:"pvcSize,omitempty"`
	StorageMode        string            `json:"storageMode,omitempty"`
	StorageClassesName string            `json:"storageClassesName,omitempty"`

	// nodeSelectorFlag is a list of labels, such as a=b,c=d, that selects the node with etcd's data.
	nodeSelectorFlag string
}

type externalEtcd struct {
	Endpoints commaList `json:"endpoints,omitempty"`
	CAFile    string    `json:"caFile,omitempty"`
	CertFile  string    `json:"certFile,omitempty"`
	KeyFile   string    `json:"keyFile,omitempty"`
	KeyPrefix string    `json:"keyPrefix,omitempty"`
}

type hostOptions struct {
	APIEndpoint string         `json:"apiEndpoint,omitempty"`
	Kubeconfig  string         `json:"kubeconfig,omitempty"`
	Context     string         `json:"context,omitempty"`
	Domain      string         `json:"domain,omitempty"`
	SecretRef   map[string]any `json:"secretRef,omitempty"`
}

type imageOptions struct {
	ImagePullPolicy        string   `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets       []string `json:"imagePullSecrets,omitempty"`
	KubeImageMirrorCountry string   `json:"kubeImageMirrorCountry,omitempty"`
	KubeImageRegistry      string   `json:"kubeImageRegistry,omitempty"`
	KubeImageTag           string   `json:"kubeImageTag,omitempty"`
	// PrivateRegistry replaces the registry and path of all images.
	PrivateRegistry struct {
		Registry string `json:"registry,omitempty"`
	} `json:"privateRegistry,omitzero"`
}

type componentOptions struct {
	KarmadaAPIServer           apiServerOptions `json:"karmadaAPIServer,omitzero"`
	KarmadaAggregatedAPIServer component        `json:"karmadaAggregatedAPIServer,omitzero"`
	KubeControllerManager      component        `json:"kubeControllerManager,omitzero"`
	KarmadaControllerManager   component        `json:"karmadaControllerManager,omitzero"`
	KarmadaScheduler           component        `json:"karmadaScheduler,omitzero"`
	KarmadaWebhook             component        `json:"karmadaWebhook,omitzero"`
}

type apiServerOptions struct {
	component `json:",inline"`
	// AdvertiseAddress is the API server's address for clients outside the host cluster.
	AdvertiseAddress   string            `json:"advertiseAddress,omitempty"`
	Networking         networkingOptions `json:"networking,omitzero"`
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
}

type networkingOptions struct {
	Namespace string `json:"namespace,omitempty"`
	Port      int32  `json:"port,omitempty"`
}

// component contains a component's settings.
type component struct {
	Repository        string                       `json:"repository,omitempty"`
	Tag               string                       `json:"tag,omitempty"`
	Replicas          *int32                       `json:"replicas,omitempty"`
	Resources         *corev1.ResourceRequirements `json:"resources,omitempty"`
	NodeSelector      map[string]string            `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration          `json:"tolerations,omitempty"`
	Affinity          *corev1.Affinity             `json:"affinity,omitempty"`
	PriorityClassName string                       `json:"priorityClassName,omitempty"`
	ExtraArgs         []argument                   `json:"extraArgs,omitempty"`

	// imageFlag is the image if the file contains no repository. extraArgsFlag contains arguments that apply
	// in addition to the file's.
	imageFlag     string
	extraArgsFlag []string
}

type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Keys of components in the chart values.
const (
	apiServer         = "apiServer"
	controllerManager = "controllerManager"
	webhook           = "webhook"
	etcd              = "etcd"
)

// componentRow describes a component that has the common flags and settings.
type componentRow struct {
	*component
	// key is the component's key in the chart values, and flag the prefix of its flags.
	key, flag string
	// kubeImage is the upstream image that can run the component. It is empty if only the Karmada image can.
	kubeImage string
}

// componentRows returns the control plane's components without etcd.
func (o *initOptions) componentRows() []componentRow {
	c := &o.Components
	return []componentRow{
		{&c.KarmadaAPIServer.component, apiServer, "karmada-apiserver", "kube-apiserver"},
		{&c.KarmadaAggregatedAPIServer, "aggregatedApiServer", "karmada-aggregated-apiserver", ""},
		{&c.KubeControllerManager, "kubeControllerManager", "karmada-kube-controller-manager", "kube-controller-manager"},
		{&c.KarmadaControllerManager, controllerManager, "karmada-controller-manager", ""},
		{&c.KarmadaScheduler, "scheduler", "karmada-scheduler", ""},
		{&c.KarmadaWebhook, webhook, "karmada-webhook", ""},
	}
}

// etcdRow returns the row for etcd, which has further flags.
func (o *initOptions) etcdRow() componentRow {
	return componentRow{&o.Etcd.Local.component, etcd, "etcd", "etcd"}
}

// image returns the component's image. It may be empty.
func (c *component) image() string {
	switch {
	case c.Repository == "":
		return c.imageFlag
	case c.Tag == "":
		return c.Repository
	}
	return c.Repository + ":" + c.Tag
}

// arguments returns the component's additional arguments. The file's arguments replace the flag's arguments
// of the same name. The flag splits its value at commas, so a part without dashes continues the previous
// argument.
func (c *component) arguments() []string {
	var arguments []string
	for _, part := range c.extraArgsFlag {
		if len(arguments) > 0 && !strings.HasPrefix(part, "--") {
			arguments[len(arguments)-1] += "," + part
			continue
		}
		arguments = append(arguments, part)
	}
	for _, given := range c.ExtraArgs {
		text := "--" + strings.TrimPrefix(given.Name, "--")
		if given.Value != "" {
			text += "=" + given.Value
		}
		arguments = slices.DeleteFunc(arguments, func(other string) bool { return argumentName(other) == argumentName(text) })
		arguments = append(arguments, text)
	}
	return arguments
}

// argumentName returns the part before the equals sign.
func argumentName(argument string) string {
	name, _, _ := strings.Cut(argument, "=")
	return name
}

// commaList is a list that is set by a comma-separated flag.
type commaList []string

// String implements pflag.Value.
func (c *commaList) String() string { return strings.Join(*c, ",") }

// Set implements pflag.Value. It replaces the entries.
func (c *commaList) Set(text string) error {
	*c = nil
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			*c = append(*c, entry)
		}
	}
	return nil
}

// Type implements pflag.Value.
func (c *commaList) Type() string { return "string" }
