package policy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// NoMatchError says that no policy selects a template which a user meant to
// propagate.
type NoMatchError struct {
	// Nearest is the policy that comes nearest; nil when there is none.
	Nearest *Miss
	// Released names the binding that a policy left behind; empty when there is
	// none.
	Released string
}

// Error implements error.
func (e *NoMatchError) Error() string {
	text := "No policy match for resource"
	if e.Nearest != nil {
		text += ": " + e.Nearest.String()
	}
	if e.Released != "" {
		text += "; the policy that had claimed it is gone or no longer selects it, and binding " + e.Released + " stays as it is"
	}
	return conditions.Clip(text)
}

// CheckMatch returns a *NoMatchError for a template that no policy selects, if
// anything shows that a user meant to propagate it: a policy that comes near, or
// the binding that a policy released. It returns nil for all others, which are
// most objects of a control plane. bound is the binding of the template, or nil.
func CheckMatch(template *unstructured.Unstructured, bound binding.Object, nearest func(*unstructured.Unstructured) (Miss, bool)) error {
	if template.GetDeletionTimestamp() != nil {
		return nil
	}
	failure := &NoMatchError{}
	if bound != nil && len(bound.BindingSpec().RequiredBy) > 0 {
		return nil // the object follows those that refer to it
	}
	if bound != nil && metav1.IsControlledBy(bound, template) && Released(bound) {
		failure.Released = types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}.String()
	}
	if failure.Released == "" && madeBySystem(template) {
		return nil
	}
	if miss, ok := nearest(template); ok {
		failure.Nearest = &miss
	}
	if failure.Nearest == nil && failure.Released == "" {
		return nil
	}
	return failure
}

// madeBySystem reports whether the object was made by a controller and not by a
// user: users do not miss policies for those.
func madeBySystem(template *unstructured.Unstructured) bool {
	if metav1.GetControllerOf(template) != nil || template.GetLabels()["kubernetes.io/bootstrapping"] != "" {
		return true
	}
	name := template.GetName()
	switch template.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "ConfigMap"}:
		return name == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return name == "default"
	case schema.GroupKind{Kind: "Service"}:
		return name == "kubernetes" && template.GetNamespace() == metav1.NamespaceDefault
	case schema.GroupKind{Kind: "Secret"}:
		return isSystemSecret(template)
	case schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Kind: "Event"}, schema.GroupKind{Kind: "Node"},
		schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return true
	}
	return strings.HasPrefix(name, "system:")
}

func isSystemSecret(secret *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(secret.Object, "type")
	switch corev1.SecretType(kind) {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1":
		return true
	}
	return false
}
