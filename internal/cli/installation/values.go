package installation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	jsonutil "k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

type values = rendering.Values

// Registries and tags of upstream images.
const (
	kubeRegistry   = "registry.k8s.io"
	cnRegistry     = "registry.cn-hangzhou.aliyuncs.com/google_containers"
	defaultKubeTag = "v1.36.2"
	etcdTag        = "3.6.8-0"
)

// values returns the chart values. addresses are the API server's addresses for clients outside the host
// cluster; the kubeconfig contains the first one.
func (o *initOptions) values(addresses []string) (values, error) {
	all := values{
		"naming": values{"kubeControllerManager": "kube-controller-manager", "configPerComponent": true},
		"global": values{
			"imagePullSecrets": list(o.Images.ImagePullSecrets),
			"commonLabels":     values{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingApp},
		},
		"karmadaImagePullPolicy": o.Images.ImagePullPolicy,
		"clusterDomain":          o.HostCluster.Domain,
		"certs": values{"mode": "auto", "auto": values{
			"expiry": o.Certificates.ValidityPeriod.Duration.String(),
			"hosts":  list(slices.Concat(addresses, o.Certificates.ExternalDNS, o.Certificates.ExternalIP)),
		}},
		"networkPolicies": values{"enabled": o.networkPolicies},
	}
	if registry := o.Images.PrivateRegistry.Registry; registry != "" {
		all["componentDefaults"] = values{"image": values{"registry": registry, "repository": rendering.ImageName}}
	}
	for _, row := range o.componentRows() {
		component, err := row.values(&o.Images)
		if err != nil {
			return nil, err
		}
		if flag, hasFlag := failoverFlags[row.key]; hasFlag && o.failover {
			component["featureGates"] = values{failoverGate: true}
			if isSetByUser := slices.ContainsFunc(row.arguments(),
				func(argument string) bool { return argumentName(argument) == flag }); !isSetByUser {
				component["extraArgs"] = list(append(row.arguments(), flag+"=true"))
			}
		}
		all[row.key] = component
	}
	options, server := &o.Components.KarmadaAPIServer, all[apiServer].(values)
	server["serviceType"], server["nodePort"] = "NodePort", int64(options.Networking.Port)
	server["externalURL"] = "https://" + net.JoinHostPort(addresses[0], strconv.Itoa(int(options.Networking.Port)))
	server["serviceAnnotations"] = stringMap(options.ServiceAnnotations)
	var err error
	all[etcd], err = o.etcdValues()
	return all, err
}

// failoverGate is the feature gate that --failover enables.
const failoverGate = "Failover"

// failoverFlags are the flags, by component, that --failover sets to true unless the user sets them. It also
// enables the feature gate Failover in these components.
var failoverFlags = map[string]string{
	controllerManager: "--enable-no-execute-taint-eviction",
	webhook:           "--allow-no-execute-taint-policy",
}

func (o *initOptions) etcdValues() (values, error) {
	if external := &o.Etcd.External; o.Etcd.isExternal() {
		return values{"mode": "external", "external": values{"servers": external.Endpoints.String(), "registryPrefix": external.KeyPrefix}}, nil
	}
	internal, err := o.etcdRow().values(&o.Images)
	if err != nil {
		return nil, err
	}
	local := &o.Etcd.Local
	internal["storageType"] = map[string]string{storageEmptyDir: "emptyDir", storageHostPath: "hostPath",
		storageClaim: "pvc"}[local.StorageMode]
	internal["hostPath"] = local.DataPath
	internal["pvc"] = values{"storageClass": local.StorageClassesName, "size": local.PVCSize}
	if local.StorageMode == storageHostPath && local.NodeSelector == nil {
		internal["nodeSelector"] = parseLabels(local.nodeSelectorFlag)
	}
	return values{"mode": "internal", "internal": internal}, nil
}

// parseLabels parses labels such as a=b,c=d.
func parseLabels(text string) values {
	labels := values{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key != "" {
			labels[key] = value
		}
	}
	return labels
}

// values returns the component's chart values.
func (c componentRow) values(images *imageOptions) (values, error) {
	encoded, err := json.Marshal(c.component)
	if err != nil {
		return nil, fmt.Errorf("encoding the settings of %s: %w", c.flag, err)
	}
	settings := values{}
	if err := jsonutil.Unmarshal(encoded, &settings); err != nil {
		return nil, fmt.Errorf("decoding the settings of %s: %w", c.flag, err)
	}
	component := values{"replicaCount": int64(*c.Replicas), "priorityClassName": c.PriorityClassName, "extraArgs": list(c.arguments())}
	for _, key := range []string{"affinity", "nodeSelector", "resources", "tolerations"} {
		if setting, isSet := settings[key]; isSet {
			component[key] = setting
		}
	}
	if image := c.imageValues(images); image != nil {
		component["image"] = image
	}
	return component, nil
}

// imageValues returns the component's image, or nil if it is the Karmada image. The image comes from the
// component's own flag, or is an upstream image if any flag selects upstream images.
func (c componentRow) imageValues(images *imageOptions) values {
	if image := c.image(); image != "" && image != install.DefaultImage() {
		repository, tag := rendering.SplitImage(image)
		return values{"registry": "", "repository": repository, "tag": tag}
	}
	registry := images.KubeImageRegistry
	switch {
	case c.kubeImage == "":
		return nil
	case registry != "":
	case images.KubeImageMirrorCountry == "cn":
		registry = cnRegistry
	case images.KubeImageMirrorCountry == "global", images.KubeImageTag != "":
		registry = kubeRegistry
	default:
		return nil
	}
	tag := cmp.Or(images.KubeImageTag, defaultKubeTag)
	if c.key == etcd {
		tag = etcdTag
	}
	return values{"registry": registry, "repository": c.kubeImage, "tag": tag}
}

func list(texts []string) []any {
	entries := make([]any, 0, len(texts))
	for _, text := range texts {
		entries = append(entries, text)
	}
	return entries
}

func stringMap(texts map[string]string) values {
	entries := values{}
	for key, text := range texts {
		entries[key] = text
	}
	return entries
}
