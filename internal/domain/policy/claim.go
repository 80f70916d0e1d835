package policy

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// Claim identifies the policy that claims an object (a template or its binding).
// Claims are comparable with ==. The zero value means "no claim".
type Claim struct {
	// Namespace of a PropagationPolicy; empty for a ClusterPropagationPolicy.
	Namespace string
	Name      string
	// ID is the permanent id of the policy. A policy that was deleted and
	// recreated under the same name has a different id.
	ID string
}

// ClaimOf returns the claim of a policy. Its ID is empty if the policy did not pass
// the admission webhook. Such a claim must not be applied.
func ClaimOf(policy Object) Claim {
	claim := Claim{Namespace: policy.GetNamespace(), Name: policy.GetName()}
	claim.ID = policy.GetLabels()[claim.label()]
	return claim
}

// ClaimedBy returns the claim that is recorded on an object, and false if there is
// none. A claim is valid only if all its keys have values. The claim of a
// PropagationPolicy takes precedence.
func ClaimedBy(object metav1.Object) (Claim, bool) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	claim := Claim{
		Namespace: annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation],
		Name:      annotations[policyv1alpha1.PropagationPolicyNameAnnotation],
		ID:        labels[policyv1alpha1.PropagationPolicyPermanentIDLabel],
	}
	if claim.Namespace != "" && claim.Name != "" && claim.ID != "" {
		return claim, true
	}
	claim = Claim{
		Name: annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation],
		ID:   labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel],
	}
	if claim.Name != "" && claim.ID != "" {
		return claim, true
	}
	return Claim{}, false
}

// IsReleased reports whether a policy released the binding that was made for it: the
// binding has the annotation of Bind but no claim, and no other binding requires it.
// Its Works stay in place, and changes of the template no longer reach it.
func IsReleased(of binding.Object) bool {
	_, made := of.GetAnnotations()[TemplateStateAnnotation]
	_, claimed := ClaimedBy(of)
	return made && !claimed && len(of.BindingSpec().RequiredBy) == 0
}

// IsCluster reports whether the claim is that of a ClusterPropagationPolicy.
func (c Claim) IsCluster() bool { return c.Namespace == "" }

// String returns namespace/name, or the name alone for a ClusterPropagationPolicy.
func (c Claim) String() string {
	if c.IsCluster() {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// DisplayName returns the kind and name of the policy for messages to users.
func (c Claim) DisplayName() string {
	if c.IsCluster() {
		return "ClusterPropagationPolicy " + c.String()
	}
	return "PropagationPolicy " + c.String()
}

// MatchesPolicy reports whether the claim has the namespace and name of that policy. The id is
// ignored: policies are looked up by name, so a recreated policy takes over.
func (c Claim) MatchesPolicy(policy Object) bool {
	return c.Namespace == policy.GetNamespace() && c.Name == policy.GetName()
}

// Apply writes the claim to an object and reports whether the object changed. The
// claim of a PropagationPolicy removes the claim of a ClusterPropagationPolicy, but
// not the reverse: an object with a complete claim of a PropagationPolicy is never
// matched against ClusterPropagationPolicies.
func (c Claim) Apply(object metav1.Object) (changed bool) {
	labels := copyMap(object.GetLabels())
	annotations := copyMap(object.GetAnnotations())
	labels[c.label()] = c.ID
	maps.Copy(annotations, c.annotations())
	if !c.IsCluster() {
		delete(labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
		delete(annotations, policyv1alpha1.ClusterPropagationPolicyAnnotation)
	}
	return setMetadata(object, labels, annotations)
}

// Remove deletes the claim and the recorded user state from an object, and reports
// whether the object changed. An object with a different id is not changed: another
// policy may have claimed it in the meantime.
func (c Claim) Remove(object metav1.Object) (changed bool) {
	if c.ID == "" || object.GetLabels()[c.label()] != c.ID {
		return false
	}
	labels := copyMap(object.GetLabels())
	annotations := copyMap(object.GetAnnotations())
	delete(labels, c.label())
	for key := range c.annotations() {
		delete(annotations, key)
	}
	delete(annotations, UserStateAnnotation)
	return setMetadata(object, labels, annotations)
}

func (c Claim) label() string {
	if c.IsCluster() {
		return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	}
	return policyv1alpha1.PropagationPolicyPermanentIDLabel
}

func (c Claim) annotations() map[string]string {
	if c.IsCluster() {
		return map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: c.Name}
	}
	return map[string]string{
		policyv1alpha1.PropagationPolicyNamespaceAnnotation: c.Namespace,
		policyv1alpha1.PropagationPolicyNameAnnotation:      c.Name,
	}
}

func copyMap(values map[string]string) map[string]string {
	result := make(map[string]string, len(values)+2)
	maps.Copy(result, values)
	return result
}

func setMetadata(object metav1.Object, labels, annotations map[string]string) (changed bool) {
	if !maps.Equal(labels, object.GetLabels()) {
		object.SetLabels(nilIfEmpty(labels))
		changed = true
	}
	if !maps.Equal(annotations, object.GetAnnotations()) {
		object.SetAnnotations(nilIfEmpty(annotations))
		changed = true
	}
	return changed
}

// nilIfEmpty returns nil for an empty map, as an object read from the API server has it.
func nilIfEmpty(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	return values
}
