package installation

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/cli/command"
)

// Storage modes of etcd, as users write them.
const (
	storageEmptyDir = "emptyDir"
	storageHostPath = "hostPath"
	storageClaim    = "PVC"
)

// Keys of the chart's values of the components.
const (
	apiServer             = "apiServer"
	aggregatedAPIServer   = "aggregatedApiServer"
	kubeControllerManager = "kubeControllerManager"
	controllerManager     = "controllerManager"
	scheduler             = "scheduler"
	webhook               = "webhook"
	etcd                  = "etcd"
)

// componentRow is a component whose flags and settings have the same form.
type componentRow struct {
	// key is the key of the chart's values, and flag the prefix of the flags.
	key, flag string
	// kubeImage is the name of the upstream image that can run the component. Empty means that only
	// the image of Karmada can.
	kubeImage string
}

// componentRows are the components of a control plane besides etcd.
var componentRows = []componentRow{
	{apiServer, "karmada-apiserver", "kube-apiserver"},
	{aggregatedAPIServer, "karmada-aggregated-apiserver", ""},
	{kubeControllerManager, "karmada-kube-controller-manager", "kube-controller-manager"},
	{controllerManager, "karmada-controller-manager", ""},
	{scheduler, "karmada-scheduler", ""},
	{webhook, "karmada-webhook", ""},
}

// etcdRow is etcd, which has further flags.
var etcdRow = componentRow{etcd, "etcd", "etcd"}

// initOptions are the flags of init, after the configuration file has replaced some of them.
type initOptions struct {
	hostFlags   command.Kubeconfig
	config      string
	namespace   string
	domain      string
	port        int32
	dataDir     string
	pkiDir      string
	crds        string
	waitSeconds int
	dryRun      bool
	output      string

	certificates certificateOptions
	etcd         etcdOptions
	images       imageOptions
	components   map[string]*componentOptions
	// advertiseAddress is the address of the API server for clients outside the host.
	advertiseAddress   string
	serviceAnnotations map[string]string
	networkPolicies    bool
	// failover lets NoExecute taints evict workloads.
	failover bool
}

type certificateOptions struct {
	caCertFile, caKeyFile string
	// externalDNS and externalIP are comma-separated lists.
	externalDNS, externalIP string
	validity                time.Duration
}

type etcdOptions struct {
	componentOptions
	storageMode, dataPath, claimSize, storageClass string
	// nodeSelectorLabels are pairs of a key and a value, which select the node of the data.
	nodeSelectorLabels string
	external           externalEtcdOptions
}

type externalEtcdOptions struct {
	servers, keyPrefix        string
	caFile, certFile, keyFile string
}

type imageOptions struct {
	pullPolicy  string
	pullSecrets []string
	// registry replaces the registry and the path of all images.
	registry                             string
	kubeRegistry, kubeTag, mirrorCountry string
}

// componentOptions are the settings of one component.
type componentOptions struct {
	image         string
	replicas      int32
	priorityClass string
	extraArgs     []string
	resources     corev1.ResourceRequirements
	affinity      *corev1.Affinity
	nodeSelector  map[string]string
	tolerations   []corev1.Toleration
}

// splitList splits a comma-separated list.
func splitList(text string) []string {
	var entries []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}
