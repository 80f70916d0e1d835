// Package memberhpa decides about templates whose replicas HorizontalPodAutoscalers (HPAs) in members
// scale: which templates keep the replicas of their copies, and when these replicas are copied back to
// the template.
package memberhpa

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Target identifies the template that HPAs scale.
type Target struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
}

// Key returns a text that is equal for all versions of the same template.
func (t Target) Key() string {
	return strings.Join([]string{t.Kind.Group, t.Kind.Kind, t.Namespace, t.Name}, "|")
}

// ScaleTarget returns the template that an HPA scales in the members. ok is false if no policy claims
// the HPA, because it then reaches no member, or if its scaleTargetRef is incomplete.
func ScaleTarget(hpa *unstructured.Unstructured) (target Target, ok bool) {
	labels := hpa.GetLabels()
	isClaimed := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != ""
	reference, _, err := unstructured.NestedStringMap(hpa.Object, "spec", "scaleTargetRef")
	if !isClaimed || err != nil {
		return Target{}, false
	}
	version, err := schema.ParseGroupVersion(reference["apiVersion"])
	if err != nil || version.Version == "" || reference["kind"] == "" || reference["name"] == "" {
		return Target{}, false
	}
	return Target{Kind: version.WithKind(reference["kind"]), Namespace: hpa.GetNamespace(), Name: reference["name"]}, true
}
