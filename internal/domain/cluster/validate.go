package cluster

import (
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Validate returns all errors in the Cluster. The result is empty if the Cluster may be stored.
// Validate does not check generic metadata (labels, annotations, owners).
func Validate(cluster *clusterv1alpha1.Cluster) field.ErrorList {
	errs := validateName(cluster.Name, field.NewPath("metadata", "name"))
	return append(errs, validateSpec(&cluster.Spec, field.NewPath("spec"))...)
}

// ValidateUpdate returns all errors in a Cluster that replaces a stored Cluster. It validates only the
// new Cluster, because no field of the spec is immutable. The API server validates the generic
// metadata.
func ValidateUpdate(cluster, _ *clusterv1alpha1.Cluster) field.ErrorList {
	return Validate(cluster)
}

func validateName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "the cluster needs a name")}
	}
	var errs field.ErrorList
	// Longer names contain the Cluster's name (the execution namespace, roles in the member) and have
	// length limits too.
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		errs = append(errs, field.TooLong(path, name, clusterv1alpha1.ClusterNameMaxLength))
	}
	for _, reason := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, reason))
	}
	return errs
}

func validateSpec(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	errs := validateSyncMode(spec.SyncMode, path.Child("syncMode"))
	errs = append(errs, validateEndpoint(spec.APIEndpoint, path.Child("apiEndpoint"))...)
	errs = append(errs, validateSecretRef(spec.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, validateSecretRef(spec.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)
	errs = append(errs, validateProxyURL(spec.ProxyURL, path.Child("proxyURL"))...)
	errs = append(errs, validateTopology(spec, path)...)
	errs = append(errs, validateTaints(spec.Taints, path.Child("taints"))...)
	return append(errs, validateModels(spec.ResourceModels, path.Child("resourceModels"))...)
}

func validateSyncMode(mode clusterv1alpha1.ClusterSyncMode, path *field.Path) field.ErrorList {
	modes := []clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Push, clusterv1alpha1.Pull}
	switch {
	case mode == "":
		return field.ErrorList{field.Required(path, "Push or Pull")}
	case !slices.Contains(modes, mode):
		return field.ErrorList{field.NotSupported(path, mode, modes)}
	}
	return nil
}

func validateEndpoint(endpoint string, path *field.Path) field.ErrorList {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return field.ErrorList{field.Invalid(path, endpoint, err.Error())}
	}
	rules := []struct {
		broken bool
		reason string
	}{
		{u.Host == "", "the URL needs a host"},
		{u.User != nil, "the URL must not name a user"},
		{u.RawQuery != "" || u.ForceQuery, "the URL must not have a query"},
		{strings.Contains(endpoint, "#"), "the URL must not have a fragment"},
	}
	var errs field.ErrorList
	for _, rule := range rules {
		if rule.broken {
			errs = append(errs, field.Invalid(path, endpoint, rule.reason))
		}
	}
	return errs
}

func validateSecretRef(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "a secret is found by namespace and name"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "a secret is found by namespace and name"))
	}
	return errs
}

func validateProxyURL(proxy string, path *field.Path) field.ErrorList {
	if proxy == "" {
		return nil
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return field.ErrorList{field.Invalid(path, proxy, err.Error())}
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		return nil
	}
	return field.ErrorList{field.Invalid(path, proxy, "the scheme must be http, https or socks5")}
}

func validateTopology(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	errs := validateLabelValue(spec.Provider, path.Child("provider"))
	errs = append(errs, validateLabelValue(spec.Region, path.Child("region"))...)
	errs = append(errs, validateLabelValue(spec.Zone, path.Child("zone"))...)
	for i, zone := range spec.Zones {
		errs = append(errs, validateLabelValue(zone, path.Child("zones").Index(i))...)
	}
	if spec.Zone != "" && len(spec.Zones) > 0 {
		errs = append(errs, field.Invalid(path.Child("zone"), spec.Zone, "zone and zones must not be set together"))
	}
	return errs
}

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, reason := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, reason))
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := sets.New[identity]()
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint.Key, at.Child("key"))...)
		errs = append(errs, validateLabelValue(taint.Value, at.Child("value"))...)
		if !slices.Contains(effects, taint.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), taint.Effect, effects))
		}
		id := identity{taint.Key, taint.Effect}
		if seen.Has(id) {
			errs = append(errs, field.Duplicate(at, taint.Key+":"+string(taint.Effect)))
		}
		seen.Insert(id)
	}
	return errs
}
