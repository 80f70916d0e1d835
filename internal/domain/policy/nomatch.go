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

// NoMatchError reports that no policy selects a template that a user apparently intended to propagate.
type NoMatchError struct {
	// Nearest is the policy that is closest to selecting the template, or nil.
	Nearest *NearMiss
	// Released is the name of the template's binding if a policy released it, or empty.
	Released string
}

// Error implements error.
func (n *NoMatchError) Error() string {
	text := "No policy match for resource"
	if n.Nearest != nil {
		text += ": " + n.Nearest.String()
	}
	if n.Released != "" {
		text += "; the policy that claimed it was deleted or no longer selects it, and binding " + n.Released + " is kept unchanged"
	}
	return conditions.LimitMessage(text)
}

// CheckMatch returns a *NoMatchError for a template that no policy selects if a user apparently intended
// to propagate it: a policy nearly selects it, or a policy released its binding. It returns nil for
// all other templates, because most objects in a control plane are not meant to be propagated. bound
// is the template's binding, or nil.
func CheckMatch(
	template *unstructured.Unstructured, bound binding.Object, nearest func(*unstructured.Unstructured) (NearMiss, bool),
) error {
	if template.GetDeletionTimestamp() != nil {
		return nil
	}
	noMatch := &NoMatchError{}
	if bound != nil && len(bound.BindingSpec().RequiredBy) > 0 {
		return nil // the object is propagated as a dependency
	}
	if bound != nil && metav1.IsControlledBy(bound, template) && IsReleased(bound) {
		noMatch.Released = types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}.String()
	}
	if noMatch.Released == "" && isSystemObject(template) {
		return nil
	}
	if miss, ok := nearest(template); ok {
		noMatch.Nearest = &miss
	}
	if noMatch.Nearest == nil && noMatch.Released == "" {
		return nil
	}
	return noMatch
}

// isSystemObject reports whether Kubernetes or a controller, not a user, created the object. Users do
// not expect policies for such objects.
func isSystemObject(template *unstructured.Unstructured) bool {
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
