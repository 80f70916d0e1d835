package policy

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// Claim names the policy that an object (a template or its binding) belongs to.
// Claims are comparable with ==; the zero value means "none".
type Claim struct {
	// Namespace of a PropagationPolicy; empty for a ClusterPropagationPolicy.
	Namespace string
	Name      string
	// ID is the permanent id of the policy. A policy that was deleted and
	// created anew under the same name has another one.
	ID string
}

// ClaimOf returns the claim that the policy makes. Its ID is empty when the
// policy passed no admission; such a claim must not be applied.
func ClaimOf(policy Object) Claim {
	claim := Claim{Namespace: policy.GetNamespace(), Name: policy.GetName()}
	claim.ID = policy.GetLabels()[claim.label()]
	return claim
}

// ClaimedBy reads the claim on an object. A claim counts only when all its keys
// have values; that of a PropagationPolicy goes first.
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

// Released reports whether a binding was made for a policy that has let go of it
// since: it bears the mark of Bind, but no claim, and no other binding needs it.
// What was made of it stays as it is; it follows its template no longer.
func Released(of binding.Object) bool {
	_, made := of.GetAnnotations()[TemplateStateAnnotation]
	_, claimed := ClaimedBy(of)
	return made && !claimed && len(of.BindingSpec().RequiredBy) == 0
}

// IsCluster reports whether the claim is one of a ClusterPropagationPolicy.
func (c Claim) IsCluster() bool { return c.Namespace == "" }

// String is the name for people: namespace/name, or name alone.
func (c Claim) String() string {
	if c.IsCluster() {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// Title is the name for people, with the kind of the policy.
func (c Claim) Title() string {
	if c.IsCluster() {
		return "ClusterPropagationPolicy " + c.String()
	}
	return "PropagationPolicy " + c.String()
}

// Names reports whether the claim names that policy, whatever its id: policies
// are looked up by name, so that one created anew takes over.
func (c Claim) Names(policy Object) bool {
	return c.Namespace == policy.GetNamespace() && c.Name == policy.GetName()
}

// Apply writes the claim on an object and reports whether that changed it. The
// claim of a PropagationPolicy removes one of a ClusterPropagationPolicy, not
// the other way round: an object with a complete claim of a PropagationPolicy is
// never offered to a ClusterPropagationPolicy.
func (c Claim) Apply(object metav1.Object) (changed bool) {
	labels := copyOf(object.GetLabels())
	annotations := copyOf(object.GetAnnotations())
	labels[c.label()] = c.ID
	maps.Copy(annotations, c.annotations())
	if !c.IsCluster() {
		delete(labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
		delete(annotations, policyv1alpha1.ClusterPropagationPolicyAnnotation)
	}
	return store(object, labels, annotations)
}

// Remove takes the claim off an object, with what was recorded along with it, and
// reports whether that changed the object. One that does not carry this very id
// is left alone: another policy may have taken it over since.
func (c Claim) Remove(object metav1.Object) (changed bool) {
	if c.ID == "" || object.GetLabels()[c.label()] != c.ID {
		return false
	}
	labels := copyOf(object.GetLabels())
	annotations := copyOf(object.GetAnnotations())
	delete(labels, c.label())
	for key := range c.annotations() {
		delete(annotations, key)
	}
	delete(annotations, UserStateAnnotation)
	return store(object, labels, annotations)
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

func copyOf(marks map[string]string) map[string]string {
	result := make(map[string]string, len(marks)+2)
	maps.Copy(result, marks)
	return result
}

func store(object metav1.Object, labels, annotations map[string]string) (changed bool) {
	if !maps.Equal(labels, object.GetLabels()) {
		object.SetLabels(orNil(labels))
		changed = true
	}
	if !maps.Equal(annotations, object.GetAnnotations()) {
		object.SetAnnotations(orNil(annotations))
		changed = true
	}
	return changed
}

// orNil keeps objects without marks in the form in which they are read back.
func orNil(marks map[string]string) map[string]string {
	if len(marks) == 0 {
		return nil
	}
	return marks
}
