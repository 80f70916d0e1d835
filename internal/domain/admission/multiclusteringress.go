package admission

import (
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
)

// validateMultiClusterIngress validates a MultiClusterIngress by the API server's rules for an Ingress
// (networking.k8s.io/v1).
func (r *report) validateMultiClusterIngress(ingress, old *networkingv1alpha1.MultiClusterIngress) {
	path, spec := specPath(), &ingress.Spec
	if spec.DefaultBackend == nil && len(spec.Rules) == 0 {
		r.addErrors(field.Invalid(path, "", "defaultBackend or rules are needed"))
	}
	if spec.DefaultBackend != nil {
		r.validateIngressBackend(path.Child("defaultBackend"), spec.DefaultBackend)
	}
	if spec.IngressClassName != nil {
		r.addInvalid(path.Child("ingressClassName"), *spec.IngressClassName, validation.IsDNS1123Subdomain(*spec.IngressClassName))
	}
	for i := range spec.Rules {
		r.validateIngressRule(path.Child("rules").Index(i), &spec.Rules[i])
	}
	for i := range spec.TLS {
		r.validateIngressTLS(path.Child("tls").Index(i), &spec.TLS[i])
	}
	if old == nil {
		return
	}
	r.addErrors(apivalidation.ValidateObjectMetaUpdate(&ingress.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))...)
	for i, point := range ingress.Status.LoadBalancer.Ingress {
		r.validateIngressPoint(field.NewPath("status", "loadBalancer", "ingress").Index(i), point.IP, point.Hostname)
	}
}

func (r *report) validateIngressTLS(path *field.Path, tls *networkingv1.IngressTLS) {
	for i, host := range tls.Hosts {
		r.addInvalid(path.Child("hosts").Index(i), host, hostErrors(host))
	}
	if tls.SecretName != "" {
		r.addInvalid(path.Child("secretName"), tls.SecretName, validation.IsDNS1123Subdomain(tls.SecretName))
	}
}

func (r *report) validateIngressRule(path *field.Path, rule *networkingv1.IngressRule) {
	if rule.Host != "" {
		if _, err := netip.ParseAddr(rule.Host); err == nil {
			r.addErrors(field.Invalid(path.Child("host"), rule.Host, "must be a name, not an address"))
		}
		r.addInvalid(path.Child("host"), rule.Host, hostErrors(rule.Host))
	}
	if rule.HTTP == nil {
		return
	}
	if len(rule.HTTP.Paths) == 0 {
		r.addErrors(field.Required(path.Child("http", "paths"), "at least one path is needed"))
	}
	for i := range rule.HTTP.Paths {
		itemPath := path.Child("http", "paths").Index(i)
		r.validateIngressPath(itemPath, &rule.HTTP.Paths[i])
		r.validateIngressBackend(itemPath.Child("backend"), &rule.HTTP.Paths[i].Backend)
	}
}

func hostErrors(host string) []string {
	if strings.Contains(host, "*") {
		return validation.IsWildcardDNS1123Subdomain(host)
	}
	return validation.IsDNS1123Subdomain(host)
}

func (r *report) validateIngressPath(path *field.Path, entry *networkingv1.HTTPIngressPath) {
	types := []networkingv1.PathType{
		networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific,
	}
	if entry.PathType == nil {
		r.addErrors(field.Required(path.Child("pathType"), "every path needs a type"))
		return
	}
	switch *entry.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		r.validateCanonicalPath(path.Child("path"), entry.Path)
	case networkingv1.PathTypeImplementationSpecific:
		if entry.Path != "" && !strings.HasPrefix(entry.Path, "/") {
			r.addErrors(field.Invalid(path.Child("path"), entry.Path, "must begin with '/'"))
		}
	default:
		r.addErrors(field.NotSupported(path.Child("pathType"), *entry.PathType, types))
	}
}

// validateCanonicalPath validates that a path is absolute and canonical, because different proxies
// interpret other paths differently.
func (r *report) validateCanonicalPath(path *field.Path, value string) {
	if !strings.HasPrefix(value, "/") {
		r.addErrors(field.Invalid(path, value, "must begin with '/'"))
		return
	}
	for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(value, sequence) {
			r.addErrors(field.Invalid(path, value, "must not contain '"+sequence+"'"))
		}
	}
	for _, suffix := range []string{"/..", "/."} {
		if strings.HasSuffix(value, suffix) {
			r.addErrors(field.Invalid(path, value, "must not end with '"+suffix+"'"))
		}
	}
}

func (r *report) validateIngressBackend(path *field.Path, backend *networkingv1.IngressBackend) {
	switch {
	case backend.Resource != nil && backend.Service != nil:
		r.addErrors(field.Invalid(path, "", "service and resource exclude each other"))
	case backend.Resource != nil:
		r.validatePathSegment(path.Child("resource", "kind"), backend.Resource.Kind)
		r.validatePathSegment(path.Child("resource", "name"), backend.Resource.Name)
		if group := backend.Resource.APIGroup; group != nil {
			r.addInvalid(path.Child("resource", "apiGroup"), *group, validation.IsDNS1123Subdomain(*group))
		}
	case backend.Service != nil:
		r.validateIngressService(path.Child("service"), backend.Service)
	default:
		r.addErrors(field.Required(path, "service or resource is needed"))
	}
}

func (r *report) validateIngressService(path *field.Path, service *networkingv1.IngressServiceBackend) {
	if service.Name == "" {
		r.addErrors(field.Required(path.Child("name"), "the name of the Service is needed"))
	} else {
		r.addInvalid(path.Child("name"), service.Name, validation.IsDNS1035Label(service.Name))
	}
	hasName, hasNumber := service.Port.Name != "", service.Port.Number != 0
	switch {
	case hasName == hasNumber:
		r.addErrors(field.Required(path.Child("port"), "exactly one of name and number is needed"))
	case hasName:
		r.addInvalid(path.Child("port", "name"), service.Port.Name, validation.IsValidPortName(service.Port.Name))
	default:
		r.addInvalid(path.Child("port", "number"), service.Port.Number, validation.IsValidPortNum(int(service.Port.Number)))
	}
}
