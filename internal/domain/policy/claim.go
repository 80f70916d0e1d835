package policy

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// Claim identifies the policy that claims an object (a template or its binding).
// Claims are comparable with ==. The zero value means "no claim".
type Claim struct {
	// Namespace is the namespace of a PropagationPolicy. It is empty for a
	// ClusterPropagationPolicy.
	Namespace string
	Name      string
	// ID is the permanent ID of the policy. A policy that was deleted and recreated under the same
	// name has a different ID.
	ID string
}

// ClaimOf returns the claim of a policy. The ID of the claim is empty if the policy did not pass
// the admission webhook. A claim without an ID must not be applied.
func ClaimOf(policy Object) Claim {
	claim := Claim{Namespace: policy.GetNamespace(), Name: policy.GetName()}
	claim.ID = policy.GetLabels()[claim.label()]
	return claim
}

// ClaimedBy returns the claim that is recorded on the object, or false if there is none. A claim is
// valid only if all its keys have values. A PropagationPolicy's claim takes precedence.
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

// IsReleased reports whether the policy for which the binding was created has released it: the binding
// has the annotation that UpdateBinding sets, but no claim, and no other binding requires it. Its Works
// are kept, but no longer follow changes of the template.
func IsReleased(of binding.Object) bool {
	_, hasState := of.GetAnnotations()[policyv1alpha1.TemplateStateAnnotation]
	_, isClaimed := ClaimedBy(of)
	return hasState && !isClaimed && len(of.BindingSpec().RequiredBy) == 0
}

// LacksTemplateState reports whether the binding of a claimed template does not record the template's
// current state. Either it soon will, or the state was refused, for example because it exceeds a quota.
// Until the binding records the state, its Works keep the content that they have.
func LacksTemplateState(of binding.Object, template *unstructured.Unstructured) (bool, error) {
	recorded, hasState := of.GetAnnotations()[policyv1alpha1.TemplateStateAnnotation]
	if _, isClaimed := ClaimedBy(of); !hasState || !isClaimed || of.BindingSpec().Resource.ResourceVersion == template.GetResourceVersion() {
		return false, nil
	}
	current, err := RelevantHash(template)
	return current != recorded, err
}

// IsCluster reports whether the claim belongs to a ClusterPropagationPolicy.
func (c Claim) IsCluster() bool { return c.Namespace == "" }

// String returns namespace/name, or only the name for a ClusterPropagationPolicy.
func (c Claim) String() string {
	if c.IsCluster() {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// DisplayName returns the policy's kind and name for messages to users.
func (c Claim) DisplayName() string {
	if c.IsCluster() {
		return "ClusterPropagationPolicy " + c.String()
	}
	return "PropagationPolicy " + c.String()
}

// MatchesPolicy reports whether the claim has the policy's namespace and name. The ID is ignored,
// because a recreated policy with the same name takes over the claim.
func (c Claim) MatchesPolicy(policy Object) bool {
	return c.Namespace == policy.GetNamespace() && c.Name == policy.GetName()
}

// Apply writes the claim to the object and reports whether the object changed. A PropagationPolicy's
// claim replaces a ClusterPropagationPolicy's claim. The reverse never happens, because objects that a
// PropagationPolicy claims are not compared with ClusterPropagationPolicies.
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

// Remove deletes the claim and the recorded user state from the object, and reports whether the object
// changed. It does nothing if the object has another ID, because another policy may have claimed the
// object in the meantime.
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
	delete(annotations, policyv1alpha1.UserStateAnnotation)
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

// nilIfEmpty returns nil for an empty map, because objects read from the API server have nil
// instead of an empty map.
func nilIfEmpty(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	return values
}
