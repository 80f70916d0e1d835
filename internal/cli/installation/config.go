package installation

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// The API version and the kind of a configuration file.
const (
	configAPIVersion = configv1alpha1.GroupName + "/v1alpha1"
	configKind       = "KarmadaInitConfig"
)

// initConfig is the file of the flag --config.
type initConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              configSpec `json:"spec"`
}

type configSpec struct {
	Certificates              configCertificates `json:"certificates,omitempty"`
	Etcd                      configEtcd         `json:"etcd,omitempty"`
	HostCluster               configHost         `json:"hostCluster,omitempty"`
	Images                    configImages       `json:"images,omitempty"`
	Components                configComponents   `json:"components,omitempty"`
	KarmadaCRDs               string             `json:"karmadaCRDs,omitempty"`
	KarmadaDataPath           string             `json:"karmadaDataPath,omitempty"`
	KarmadaPKIPath            string             `json:"karmadaPKIPath,omitempty"`
	WaitComponentReadyTimeout *int               `json:"waitComponentReadyTimeout,omitempty"`
}

type configCertificates struct {
	CACertFile     string          `json:"caCertFile,omitempty"`
	CAKeyFile      string          `json:"caKeyFile,omitempty"`
	ExternalDNS    []string        `json:"externalDNS,omitempty"`
	ExternalIP     []string        `json:"externalIP,omitempty"`
	ValidityPeriod metav1.Duration `json:"validityPeriod,omitempty"`
}

type configEtcd struct {
	Local    *configLocalEtcd    `json:"local,omitempty"`
	External *configExternalEtcd `json:"external,omitempty"`
}

type configLocalEtcd struct {
	configComponent    `json:",inline"`
	DataPath           string            `json:"dataPath,omitempty"`
	NodeSelectorLabels map[string]string `json:"nodeSelectorLabels,omitempty"`
	PVCSize            string            `json:"pvcSize,omitempty"`
	StorageMode        string            `json:"storageMode,omitempty"`
	StorageClassesName string            `json:"storageClassesName,omitempty"`
}

type configExternalEtcd struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile,omitempty"`
	CertFile  string   `json:"certFile,omitempty"`
	KeyFile   string   `json:"keyFile,omitempty"`
	KeyPrefix string   `json:"keyPrefix,omitempty"`
}

type configHost struct {
	APIEndpoint string         `json:"apiEndpoint,omitempty"`
	Kubeconfig  string         `json:"kubeconfig,omitempty"`
	Context     string         `json:"context,omitempty"`
	Domain      string         `json:"domain,omitempty"`
	SecretRef   map[string]any `json:"secretRef,omitempty"`
}

type configImages struct {
	ImagePullPolicy        string          `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets       []string        `json:"imagePullSecrets,omitempty"`
	KubeImageMirrorCountry string          `json:"kubeImageMirrorCountry,omitempty"`
	KubeImageRegistry      string          `json:"kubeImageRegistry,omitempty"`
	KubeImageTag           string          `json:"kubeImageTag,omitempty"`
	PrivateRegistry        *configRegistry `json:"privateRegistry,omitempty"`
}

type configRegistry struct {
	Registry string `json:"registry,omitempty"`
}

type configComponents struct {
	KarmadaAPIServer           *configAPIServer `json:"karmadaAPIServer,omitempty"`
	KarmadaAggregatedAPIServer *configComponent `json:"karmadaAggregatedAPIServer,omitempty"`
	KubeControllerManager      *configComponent `json:"kubeControllerManager,omitempty"`
	KarmadaControllerManager   *configComponent `json:"karmadaControllerManager,omitempty"`
	KarmadaScheduler           *configComponent `json:"karmadaScheduler,omitempty"`
	KarmadaWebhook             *configComponent `json:"karmadaWebhook,omitempty"`
}

type configAPIServer struct {
	configComponent    `json:",inline"`
	AdvertiseAddress   string            `json:"advertiseAddress,omitempty"`
	Networking         configNetworking  `json:"networking,omitempty"`
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
}

type configNetworking struct {
	Namespace string `json:"namespace,omitempty"`
	Port      int32  `json:"port,omitempty"`
}

type configComponent struct {
	Repository        string                       `json:"repository,omitempty"`
	Tag               string                       `json:"tag,omitempty"`
	Replicas          *int32                       `json:"replicas,omitempty"`
	Resources         *corev1.ResourceRequirements `json:"resources,omitempty"`
	NodeSelector      map[string]string            `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration          `json:"tolerations,omitempty"`
	Affinity          *corev1.Affinity             `json:"affinity,omitempty"`
	PriorityClassName string                       `json:"priorityClassName,omitempty"`
	ExtraArgs         []configArgument             `json:"extraArgs,omitempty"`
}

type configArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// readConfig reads a configuration file. Unknown fields are errors.
func readConfig(file string) (*initConfig, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	config, err := parseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", file, err)
	}
	return config, nil
}

var errSeveralDocuments = errors.New("the file has several documents: use one document")

func parseConfig(data []byte) (*initConfig, error) {
	text := strings.TrimPrefix(strings.TrimSpace(string(data)), "---\n")
	if strings.Contains(text, "\n---") {
		return nil, errSeveralDocuments
	}
	head := &metav1.TypeMeta{}
	if err := yaml.Unmarshal(data, head); err != nil {
		return nil, fmt.Errorf("decoding the file: %w", err)
	}
	if head.APIVersion != configAPIVersion || head.Kind != configKind {
		return nil, fmt.Errorf("the file has apiVersion %q and kind %q: use %s and %s", head.APIVersion, head.Kind, configAPIVersion, configKind)
	}
	config := &initConfig{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, fmt.Errorf("decoding the file: %w", err)
	}
	if config.Spec.HostCluster.SecretRef != nil {
		return nil, errors.New("spec.hostCluster.secretRef: this command reads the host from a kubeconfig: use spec.hostCluster.kubeconfig")
	}
	if config.Spec.HostCluster.APIEndpoint != "" {
		return nil, errors.New("spec.hostCluster.apiEndpoint: this command reads the host from a kubeconfig: use spec.hostCluster.kubeconfig")
	}
	return config, nil
}

// set replaces a value if the new one is not empty.
func set[T comparable](value *T, replacement T) {
	var empty T
	if replacement != empty {
		*value = replacement
	}
}

func setList[T any](value *[]T, replacement []T) {
	if len(replacement) > 0 {
		*value = replacement
	}
}

// applyConfig replaces flags by the fields of a configuration file that are not empty.
func (o *initOptions) applyConfig(config *initConfig) {
	spec := &config.Spec
	set(&o.certificates.caCertFile, spec.Certificates.CACertFile)
	set(&o.certificates.caKeyFile, spec.Certificates.CAKeyFile)
	set(&o.certificates.externalDNS, strings.Join(spec.Certificates.ExternalDNS, ","))
	set(&o.certificates.externalIP, strings.Join(spec.Certificates.ExternalIP, ","))
	set(&o.certificates.validity, spec.Certificates.ValidityPeriod.Duration)
	set(&o.hostFlags.Path, spec.HostCluster.Kubeconfig)
	set(&o.hostFlags.Context, spec.HostCluster.Context)
	set(&o.domain, spec.HostCluster.Domain)
	set(&o.crds, spec.KarmadaCRDs)
	set(&o.dataDir, spec.KarmadaDataPath)
	set(&o.pkiDir, spec.KarmadaPKIPath)
	if spec.WaitComponentReadyTimeout != nil {
		o.waitSeconds = *spec.WaitComponentReadyTimeout
	}
	o.images.applyConfig(&spec.Images)
	o.etcd.applyConfig(&spec.Etcd)
	if server := spec.Components.KarmadaAPIServer; server != nil {
		o.components[apiServer].applyConfig(&server.configComponent)
		set(&o.advertiseAddress, server.AdvertiseAddress)
		set(&o.namespace, server.Networking.Namespace)
		set(&o.port, server.Networking.Port)
		o.serviceAnnotations = server.ServiceAnnotations
	}
	for key, component := range map[string]*configComponent{
		aggregatedAPIServer: spec.Components.KarmadaAggregatedAPIServer, kubeControllerManager: spec.Components.KubeControllerManager,
		controllerManager: spec.Components.KarmadaControllerManager, scheduler: spec.Components.KarmadaScheduler, webhook: spec.Components.KarmadaWebhook,
	} {
		o.components[key].applyConfig(component)
	}
}

func (i *imageOptions) applyConfig(config *configImages) {
	set(&i.pullPolicy, config.ImagePullPolicy)
	setList(&i.pullSecrets, config.ImagePullSecrets)
	set(&i.mirrorCountry, config.KubeImageMirrorCountry)
	set(&i.kubeRegistry, config.KubeImageRegistry)
	set(&i.kubeTag, config.KubeImageTag)
	if config.PrivateRegistry != nil {
		set(&i.registry, config.PrivateRegistry.Registry)
	}
}

func (e *etcdOptions) applyConfig(config *configEtcd) {
	if local := config.Local; local != nil {
		e.componentOptions.applyConfig(&local.configComponent)
		set(&e.dataPath, local.DataPath)
		set(&e.claimSize, local.PVCSize)
		set(&e.storageMode, local.StorageMode)
		set(&e.storageClass, local.StorageClassesName)
		if len(local.NodeSelectorLabels) > 0 {
			e.nodeSelector = local.NodeSelectorLabels
		}
	}
	if external := config.External; external != nil {
		set(&e.external.servers, strings.Join(external.Endpoints, ","))
		set(&e.external.caFile, external.CAFile)
		set(&e.external.certFile, external.CertFile)
		set(&e.external.keyFile, external.KeyFile)
		set(&e.external.keyPrefix, external.KeyPrefix)
	}
}

func (c *componentOptions) applyConfig(config *configComponent) {
	if config == nil {
		return
	}
	if config.Repository != "" {
		c.image = config.Repository
		if config.Tag != "" {
			c.image += ":" + config.Tag
		}
	}
	if config.Replicas != nil {
		c.replicas = *config.Replicas
	}
	if config.Resources != nil {
		c.resources = *config.Resources
	}
	if config.Affinity != nil {
		c.affinity = config.Affinity
	}
	if len(config.NodeSelector) > 0 {
		c.nodeSelector = config.NodeSelector
	}
	setList(&c.tolerations, config.Tolerations)
	set(&c.priorityClass, config.PriorityClassName)
	for _, argument := range config.ExtraArgs {
		text := "--" + strings.TrimPrefix(argument.Name, "--")
		if argument.Value != "" {
			text += "=" + argument.Value
		}
		c.replaceArgument(text)
	}
}

// replaceArgument adds an argument in place of an argument of the same name.
func (c *componentOptions) replaceArgument(argument string) {
	name, _, _ := strings.Cut(argument, "=")
	kept := slices.DeleteFunc(joinArguments(c.extraArgs), func(existing string) bool {
		other, _, _ := strings.Cut(existing, "=")
		return other == name
	})
	kept = append(kept, argument)
	c.extraArgs = kept
}
