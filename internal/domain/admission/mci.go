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

// multiClusterIngress wants what the API server wants of an Ingress
// (networking.k8s.io/v1).
func (r *report) multiClusterIngress(ingress, old *networkingv1alpha1.MultiClusterIngress) {
	path, spec := specPath(), &ingress.Spec
	if spec.DefaultBackend == nil && len(spec.Rules) == 0 {
		r.add(field.Invalid(path, "", "defaultBackend or rules are needed"))
	}
	if spec.DefaultBackend != nil {
		r.ingressBackend(path.Child("defaultBackend"), spec.DefaultBackend)
	}
	if spec.IngressClassName != nil {
		r.invalid(path.Child("ingressClassName"), *spec.IngressClassName, validation.IsDNS1123Subdomain(*spec.IngressClassName))
	}
	for i := range spec.Rules {
		r.ingressRule(path.Child("rules").Index(i), &spec.Rules[i])
	}
	for i := range spec.TLS {
		r.ingressTLS(path.Child("tls").Index(i), &spec.TLS[i])
	}
	if old == nil {
		return
	}
	r.add(apivalidation.ValidateObjectMetaUpdate(&ingress.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))...)
	for i, point := range ingress.Status.LoadBalancer.Ingress {
		r.ingressPoint(field.NewPath("status", "loadBalancer", "ingress").Index(i), point.IP, point.Hostname)
	}
}

func (r *report) ingressTLS(path *field.Path, tls *networkingv1.IngressTLS) {
	for i, host := range tls.Hosts {
		r.invalid(path.Child("hosts").Index(i), host, hostProblems(host))
	}
	if tls.SecretName != "" {
		r.invalid(path.Child("secretName"), tls.SecretName, validation.IsDNS1123Subdomain(tls.SecretName))
	}
}

func (r *report) ingressRule(path *field.Path, rule *networkingv1.IngressRule) {
	if rule.Host != "" {
		if _, err := netip.ParseAddr(rule.Host); err == nil {
			r.add(field.Invalid(path.Child("host"), rule.Host, "must be a name, not an address"))
		}
		r.invalid(path.Child("host"), rule.Host, hostProblems(rule.Host))
	}
	if rule.HTTP == nil {
		return
	}
	if len(rule.HTTP.Paths) == 0 {
		r.add(field.Required(path.Child("http", "paths"), "at least one path is needed"))
	}
	for i := range rule.HTTP.Paths {
		at := path.Child("http", "paths").Index(i)
		r.ingressPath(at, &rule.HTTP.Paths[i])
		r.ingressBackend(at.Child("backend"), &rule.HTTP.Paths[i].Backend)
	}
}

func hostProblems(host string) []string {
	if strings.Contains(host, "*") {
		return validation.IsWildcardDNS1123Subdomain(host)
	}
	return validation.IsDNS1123Subdomain(host)
}

func (r *report) ingressPath(path *field.Path, entry *networkingv1.HTTPIngressPath) {
	types := []networkingv1.PathType{
		networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific,
	}
	if entry.PathType == nil {
		r.add(field.Required(path.Child("pathType"), "a path has a type"))
		return
	}
	switch *entry.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		r.plainPath(path.Child("path"), entry.Path)
	case networkingv1.PathTypeImplementationSpecific:
		if entry.Path != "" && !strings.HasPrefix(entry.Path, "/") {
			r.add(field.Invalid(path.Child("path"), entry.Path, "must begin with '/'"))
		}
	default:
		r.add(field.NotSupported(path.Child("pathType"), *entry.PathType, types))
	}
}

// plainPath wants an absolute path in its shortest form: proxies disagree about
// the others.
func (r *report) plainPath(path *field.Path, value string) {
	if !strings.HasPrefix(value, "/") {
		r.add(field.Invalid(path, value, "must begin with '/'"))
		return
	}
	for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(value, sequence) {
			r.add(field.Invalid(path, value, "must not contain '"+sequence+"'"))
		}
	}
	for _, suffix := range []string{"/..", "/."} {
		if strings.HasSuffix(value, suffix) {
			r.add(field.Invalid(path, value, "must not end with '"+suffix+"'"))
		}
	}
}

func (r *report) ingressBackend(path *field.Path, backend *networkingv1.IngressBackend) {
	switch {
	case backend.Resource != nil && backend.Service != nil:
		r.add(field.Invalid(path, "", "service and resource exclude each other"))
	case backend.Resource != nil:
		r.pathSegment(path.Child("resource", "kind"), backend.Resource.Kind)
		r.pathSegment(path.Child("resource", "name"), backend.Resource.Name)
		if group := backend.Resource.APIGroup; group != nil {
			r.invalid(path.Child("resource", "apiGroup"), *group, validation.IsDNS1123Subdomain(*group))
		}
	case backend.Service != nil:
		r.ingressService(path.Child("service"), backend.Service)
	default:
		r.add(field.Required(path, "service or resource is needed"))
	}
}

func (r *report) ingressService(path *field.Path, service *networkingv1.IngressServiceBackend) {
	if service.Name == "" {
		r.add(field.Required(path.Child("name"), "a Service is found by name"))
	} else {
		r.invalid(path.Child("name"), service.Name, validation.IsDNS1035Label(service.Name))
	}
	hasName, hasNumber := service.Port.Name != "", service.Port.Number != 0
	switch {
	case hasName == hasNumber:
		r.add(field.Required(path.Child("port"), "exactly one of name and number is needed"))
	case hasName:
		r.invalid(path.Child("port", "name"), service.Port.Name, validation.IsValidPortName(service.Port.Name))
	default:
		r.invalid(path.Child("port", "number"), service.Port.Number, validation.IsValidPortNum(int(service.Port.Number)))
	}
}
