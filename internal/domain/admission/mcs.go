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

func (r *report) multiClusterService(service, old *networkingv1alpha1.MultiClusterService) {
	r.invalid(field.NewPath("metadata", "name"), service.Name, validation.IsDNS1035Label(service.Name))
	path, spec := specPath(), &service.Spec
	r.exposureTypes(path.Child("types"), spec.Types)
	r.exposurePorts(path.Child("ports"), spec.Ports)
	for i, cluster := range spec.ProviderClusters {
		r.clusterName(path.Child("providerClusters").Index(i).Child("name"), cluster.Name)
	}
	for i, cluster := range spec.ConsumerClusters {
		r.clusterName(path.Child("consumerClusters").Index(i).Child("name"), cluster.Name)
	}
	r.ignoredServiceFields(path, spec)
	r.needsGate(path, gateMultiClusterService, true)
	if old != nil {
		r.loadBalancer(field.NewPath("status", "loadBalancer"), &service.Status.LoadBalancer)
	}
}

// exposure is about the way that a service is exposed in, which it keeps.
func (r *report) exposure(service, old *networkingv1alpha1.MultiClusterService) {
	if old != nil && !slices.Equal(service.Spec.Types, old.Spec.Types) {
		r.add(field.Invalid(specPath().Child("types"), service.Spec.Types,
			"the types are immutable; delete the object and create it anew"))
	}
}

func (r *report) exposureTypes(path *field.Path, types []networkingv1alpha1.ExposureType) {
	supported := []networkingv1alpha1.ExposureType{
		networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer,
	}
	for i, exposure := range types {
		if !slices.Contains(supported, exposure) {
			r.add(field.NotSupported(path.Index(i), exposure, supported))
		}
	}
	if sets.New(types...).Len() > 1 {
		r.add(field.Invalid(path, types, "a service is exposed in one way; name one type"))
	}
}

func (r *report) exposurePorts(path *field.Path, ports []networkingv1alpha1.ExposurePort) {
	names := unique[string]{}
	for i, port := range ports {
		at := path.Index(i)
		if port.Name != "" {
			r.invalid(at.Child("name"), port.Name, validation.IsDNS1123Label(port.Name))
			names.see(r, at.Child("name"), port.Name)
		}
		r.invalid(at.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))
	}
}

func (r *report) ignoredServiceFields(path *field.Path, spec *networkingv1alpha1.MultiClusterServiceSpec) {
	if len(spec.Ports) > 0 {
		r.warn(path.Child("ports"), "has no effect: all ports of the Service are exposed")
	}
	if len(spec.Range.ClusterNames) > 0 {
		r.warn(path.Child("range"), "has no effect; use providerClusters and consumerClusters")
	}
	if len(spec.ServiceProvisionClusters) > 0 {
		r.warn(path.Child("serviceProvisionClusters"), "has no effect; use providerClusters")
	}
	if len(spec.ServiceConsumptionClusters) > 0 {
		r.warn(path.Child("serviceConsumptionClusters"), "has no effect; use consumerClusters")
	}
}

func (r *report) loadBalancer(path *field.Path, status *corev1.LoadBalancerStatus) {
	for i, ingress := range status.Ingress {
		at := path.Child("ingress").Index(i)
		r.ingressPoint(at, ingress.IP, ingress.Hostname)
		if ingress.IPMode == nil {
			continue
		}
		if ingress.IP == "" {
			r.add(field.Forbidden(at.Child("ipMode"), "there is no ip"))
		}
		modes := []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy}
		if !slices.Contains(modes, *ingress.IPMode) {
			r.add(field.NotSupported(at.Child("ipMode"), *ingress.IPMode, modes))
		}
	}
}

// ingressPoint is where traffic comes in: an address, or a name that is none.
func (r *report) ingressPoint(path *field.Path, ip, hostname string) {
	if ip != "" {
		if _, err := netip.ParseAddr(ip); err != nil {
			r.add(field.Invalid(path.Child("ip"), ip, "must be an IP address"))
		}
	}
	if hostname == "" {
		return
	}
	r.invalid(path.Child("hostname"), hostname, validation.IsDNS1123Subdomain(hostname))
	if _, err := netip.ParseAddr(hostname); err == nil {
		r.add(field.Invalid(path.Child("hostname"), hostname, "must be a name, not an address"))
	}
}
