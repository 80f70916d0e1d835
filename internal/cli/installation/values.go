package installation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/rendering"
)

type values = rendering.Values

// Registries of upstream images.
const (
	kubeRegistry   = "registry.k8s.io"
	cnRegistry     = "registry.cn-hangzhou.aliyuncs.com/google_containers"
	defaultKubeTag = "v1.36.2"
	etcdTag        = "3.6.8-0"
)

// values returns the values of the chart. addresses are the addresses at which clients outside the
// host reach the API server: the first one is in the kubeconfig.
func (o *initOptions) values(addresses []string) (values, error) {
	all := values{
		"naming": values{"kubeControllerManager": "kube-controller-manager", "configPerComponent": true},
		"global": values{
			"imagePullSecrets": list(o.images.pullSecrets),
			"commonLabels":     values{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingApp},
		},
		"karmadaImagePullPolicy": o.images.pullPolicy,
		"clusterDomain":          o.domain,
		"certs": values{"mode": "auto", "auto": values{
			"expiry": o.certificates.validity.String(),
			"hosts":  list(slices.Concat(addresses, splitList(o.certificates.externalDNS), splitList(o.certificates.externalIP))),
		}},
		"networkPolicies": values{"enabled": o.networkPolicies},
	}
	if o.images.registry != "" {
		all["componentDefaults"] = values{"image": values{"registry": o.images.registry, "repository": rendering.ImageName}}
	}
	for _, row := range componentRows {
		component, err := o.components[row.key].values(row, &o.images)
		if err != nil {
			return nil, err
		}
		all[row.key] = component
	}
	if o.failover {
		for key, flag := range failoverFlags {
			component := all[key].(values)
			component["featureGates"] = values{failoverGate: true}
			if !o.components[key].sets(flag) {
				component["extraArgs"] = append(component["extraArgs"].([]any), flag+"=true")
			}
		}
	}
	server := all[apiServer].(values)
	server["serviceType"], server["nodePort"] = "NodePort", int64(o.port)
	server["externalURL"] = fmt.Sprintf("https://%s:%d", bracket(addresses[0]), o.port)
	server["serviceAnnotations"] = stringMap(o.serviceAnnotations)
	var err error
	all[etcd], err = o.etcd.values(&o.images)
	return all, err
}

// failoverGate is the feature gate that --failover sets.
const failoverGate = "Failover"

// failoverFlags are the flags that --failover sets to true, by component, unless the user sets them.
// The components also get the feature gate Failover.
var failoverFlags = map[string]string{
	controllerManager: "--enable-no-execute-taint-eviction",
	webhook:           "--allow-no-execute-taint-policy",
}

// sets reports whether the user sets a flag of a component.
func (c *componentOptions) sets(flag string) bool {
	return slices.ContainsFunc(joinArguments(c.extraArgs), func(argument string) bool {
		name, _, _ := strings.Cut(argument, "=")
		return name == flag
	})
}

// bracket returns an IPv6 address in brackets, and any other host unchanged.
func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func (e *etcdOptions) values(images *imageOptions) (values, error) {
	if e.external.servers != "" {
		return values{"mode": "external", "external": values{"servers": e.external.servers, "registryPrefix": e.external.keyPrefix}}, nil
	}
	internal, err := e.componentOptions.values(etcdRow, images)
	if err != nil {
		return nil, err
	}
	internal["storageType"] = map[string]string{storageEmptyDir: "emptyDir", storageHostPath: "hostPath", storageClaim: "pvc"}[e.storageMode]
	internal["hostPath"] = e.dataPath
	internal["pvc"] = values{"storageClass": e.storageClass, "size": e.claimSize}
	if e.storageMode == storageHostPath && e.nodeSelector == nil {
		internal["nodeSelector"] = stringMap(parseLabels(e.nodeSelectorLabels))
	}
	return values{"mode": "internal", "internal": internal}, nil
}

// parseLabels parses labels of the form a=b,c=d.
func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key != "" {
			labels[key] = value
		}
	}
	return labels
}

// values returns the chart's values of a component.
func (c *componentOptions) values(row componentRow, images *imageOptions) (values, error) {
	component := values{
		"replicaCount":      int64(c.replicas),
		"priorityClassName": c.priorityClass,
		"extraArgs":         list(joinArguments(c.extraArgs)),
		"nodeSelector":      stringMap(c.nodeSelector),
	}
	if image := chooseImage(c.image, row, images); image != nil {
		component["image"] = image
	}
	for key, setting := range map[string]any{"resources": &c.resources, "affinity": c.affinity} {
		encoded, err := encode(setting)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", key, row.flag, err)
		}
		if len(encoded) > 0 {
			component[key] = encoded
		}
	}
	tolerations, err := encodeTolerations(c.tolerations)
	if err != nil {
		return nil, fmt.Errorf("tolerations of %s: %w", row.flag, err)
	}
	component["tolerations"] = tolerations
	return component, nil
}

// chooseImage returns the image of a component, or nil if it is the image of Karmada: an image of its
// own flag, or an upstream image if any flag selects upstream images.
func chooseImage(image string, row componentRow, images *imageOptions) values {
	if image != "" && image != defaultImage() {
		repository, tag := rendering.SplitImage(image)
		return values{"registry": "", "repository": repository, "tag": tag}
	}
	if row.kubeImage == "" {
		return nil
	}
	registry := images.kubeRegistry
	switch {
	case registry != "":
	case images.mirrorCountry == "cn":
		registry = cnRegistry
	case images.mirrorCountry == "global", images.kubeTag != "":
		registry = kubeRegistry
	default:
		return nil
	}
	tag := etcdTag
	if row.key != etcd {
		if tag = images.kubeTag; tag == "" {
			tag = defaultKubeTag
		}
	}
	return values{"registry": registry, "repository": row.kubeImage, "tag": tag}
}

// joinArguments joins the parts of arguments that the flag has split at commas: a part without dashes
// belongs to the argument before it.
func joinArguments(parts []string) []string {
	var joined []string
	for _, part := range parts {
		if len(joined) > 0 && !strings.HasPrefix(part, "--") {
			joined[len(joined)-1] += "," + part
			continue
		}
		joined = append(joined, part)
	}
	return joined
}

// encode returns an API type as values, without empty fields.
func encode(setting any) (values, error) {
	if affinity, ok := setting.(*corev1.Affinity); ok && affinity == nil {
		return nil, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(setting)
}

func encodeTolerations(tolerations []corev1.Toleration) ([]any, error) {
	encoded := []any{}
	for i := range tolerations {
		toleration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&tolerations[i])
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, toleration)
	}
	return encoded, nil
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
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		entries[key] = texts[key]
	}
	return entries
}
