package admission

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
)

func (r *report) validateMultiClusterService(service, old *networkingv1alpha1.MultiClusterService) {
	r.addInvalid(field.NewPath("metadata", "name"), service.Name, validation.IsDNS1035Label(service.Name))
	path, spec := specPath(), &service.Spec
	r.validateExposureTypes(path.Child("types"), spec.Types)
	r.validateExposurePorts(path.Child("ports"), spec.Ports)
	for i, cluster := range spec.ProviderClusters {
		r.validateClusterName(path.Child("providerClusters").Index(i).Child("name"), cluster.Name)
	}
	for i, cluster := range spec.ConsumerClusters {
		r.validateClusterName(path.Child("consumerClusters").Index(i).Child("name"), cluster.Name)
	}
	r.warnIgnoredServiceFields(path, spec)
	if old != nil {
		r.validateLoadBalancer(field.NewPath("status", "loadBalancer"), &service.Status.LoadBalancer)
	}
}

// validateExposureUnchanged validates that the exposure types do not change.
func (r *report) validateExposureUnchanged(service, old *networkingv1alpha1.MultiClusterService) {
	if old != nil && !slices.Equal(service.Spec.Types, old.Spec.Types) {
		r.addErrors(field.Invalid(specPath().Child("types"), service.Spec.Types,
			"the types are immutable; delete the object and create it anew"))
	}
}

func (r *report) validateExposureTypes(path *field.Path, types []networkingv1alpha1.ExposureType) {
	supported := []networkingv1alpha1.ExposureType{
		networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer,
	}
	for i, exposure := range types {
		if !slices.Contains(supported, exposure) {
			r.addErrors(field.NotSupported(path.Index(i), exposure, supported))
		}
	}
	if sets.New(types...).Len() > 1 {
		r.addErrors(field.Invalid(path, types, "a service is exposed in one way; name one type"))
	}
}

func (r *report) validateExposurePorts(path *field.Path, ports []networkingv1alpha1.ExposurePort) {
	names := uniqueValues[string]{}
	for i, port := range ports {
		itemPath := path.Index(i)
		if port.Name != "" {
			r.addInvalid(itemPath.Child("name"), port.Name, validation.IsDNS1123Label(port.Name))
			names.add(r, itemPath.Child("name"), port.Name)
		}
		r.addInvalid(itemPath.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))
	}
}

func (r *report) warnIgnoredServiceFields(path *field.Path, spec *networkingv1alpha1.MultiClusterServiceSpec) {
	if len(spec.Ports) > 0 {
		r.addWarning(path.Child("ports"), "has no effect: all ports of the Service are exposed")
	}
	if len(spec.Range.ClusterNames) > 0 {
		r.addWarning(path.Child("range"), "has no effect; use providerClusters and consumerClusters")
	}
	if len(spec.ServiceProvisionClusters) > 0 {
		r.addWarning(path.Child("serviceProvisionClusters"), "has no effect; use providerClusters")
	}
	if len(spec.ServiceConsumptionClusters) > 0 {
		r.addWarning(path.Child("serviceConsumptionClusters"), "has no effect; use consumerClusters")
	}
}

func (r *report) validateLoadBalancer(path *field.Path, status *corev1.LoadBalancerStatus) {
	for i, ingress := range status.Ingress {
		itemPath := path.Child("ingress").Index(i)
		r.validateIngressPoint(itemPath, ingress.IP, ingress.Hostname)
		if ingress.IPMode == nil {
			continue
		}
		if ingress.IP == "" {
			r.addErrors(field.Forbidden(itemPath.Child("ipMode"), "ipMode needs an ip"))
		}
		modes := []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy}
		if !slices.Contains(modes, *ingress.IPMode) {
			r.addErrors(field.NotSupported(itemPath.Child("ipMode"), *ingress.IPMode, modes))
		}
	}
}

// validateIngressPoint validates a load balancer's IP address or hostname.
func (r *report) validateIngressPoint(path *field.Path, ip, hostname string) {
	if ip != "" {
		if _, err := netip.ParseAddr(ip); err != nil {
			r.addErrors(field.Invalid(path.Child("ip"), ip, "must be an IP address"))
		}
	}
	if hostname == "" {
		return
	}
	r.addInvalid(path.Child("hostname"), hostname, validation.IsDNS1123Subdomain(hostname))
	if _, err := netip.ParseAddr(hostname); err == nil {
		r.addErrors(field.Invalid(path.Child("hostname"), hostname, "must be a name, not an address"))
	}
}
