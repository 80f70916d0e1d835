package policy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// TemplateStateAnnotation holds on a binding the RelevantHash of its template in
// the state that spec.resource.resourceVersion names. A template whose status
// alone was written since is still in that state, so the binding stays as it is;
// without the annotation every restart would rewrite every binding.
const TemplateStateAnnotation = "policy.karmada.io/template-state"

// BindInput is what a binding is made from. Bind modifies none of it and the
// binding shares nothing with it.
type BindInput struct {
	// Template as it is stored after it was claimed: the binding records its
	// uid and resourceVersion.
	Template *unstructured.Unstructured
	Policy   Object

	// Components of the template, when an interpreter tells them apart; then
	// Replicas is 0 and Requirements nil. All three are zero for a template that
	// is no workload.
	Components   []workv1alpha2.Component
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements

	// SchedulePriority is the value of the PriorityClass that the policy names;
	// nil removes the field.
	SchedulePriority *int32
	// WorkloadAffinity says whether the feature of that name is on.
	WorkloadAffinity bool
	// UserState is Activation.UserState; empty removes the annotation.
	UserState string
}

// OwnerError says that a binding belongs to an earlier template of the same
// name. It goes away once the garbage collector has removed that binding.
type OwnerError struct {
	Binding  string
	Got, Own types.UID
}

// Error implements error.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("binding %s has a different owner reference UID: %q, while the template has %q", e.Binding, e.Got, e.Own)
}

// CollisionError says that the binding of a template is taken: names of bindings
// do not contain the API group, so two templates can need the same one. The
// first keeps it.
type CollisionError struct {
	Binding         string
	Holder, Refused workv1alpha2.ObjectReference
}

// Error implements error.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("binding %s belongs to %s, so that %s cannot have it; rename one of them",
		e.Binding, describe(e.Holder), describe(e.Refused))
}

// Bind brings a binding in line with the template and the policy that claims it. An
// object without a name (binding.New) is filled for creation. What others decide
// (clusters, eviction tasks, requiredBy, rescheduling, suspension of scheduling,
// status) is left alone. On error (*OwnerError, *CollisionError) nothing is
// changed.
func Bind(existing binding.Object, in BindInput) error {
	reference := referenceTo(in.Template)
	if err := CheckHolder(existing, in.Template); err != nil {
		return err
	}
	state, err := RelevantHash(in.Template)
	if err != nil {
		return err
	}
	recorded := existing.BindingSpec().Resource
	if existing.GetAnnotations()[TemplateStateAnnotation] == state && recorded.UID == reference.UID && recorded.ResourceVersion != "" {
		reference.ResourceVersion = recorded.ResourceVersion
	}
	bindMetadata(existing, in, state)
	bindTemplate(existing, in, reference)
	bindPolicy(existing, in.Policy.PropagationSpec())
	if binding.Namespaced(existing) {
		bindNamespaced(existing.BindingSpec(), in)
	}
	return nil
}

func referenceTo(template *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion:      template.GetAPIVersion(),
		Kind:            template.GetKind(),
		Namespace:       template.GetNamespace(),
		Name:            template.GetName(),
		UID:             template.GetUID(),
		ResourceVersion: template.GetResourceVersion(),
	}
}

// CheckHolder returns an error (*OwnerError, *CollisionError) when a binding is not
// one that the template can have. It tells a different object from an earlier or
// a converted one: the same uid is the same object, whatever API version it is
// read in.
func CheckHolder(existing binding.Object, template *unstructured.Unstructured) error {
	if existing.GetName() == "" {
		return nil
	}
	owner := metav1.GetControllerOf(existing)
	if owner != nil && owner.UID == template.GetUID() {
		return nil
	}
	name := types.NamespacedName{Namespace: existing.GetNamespace(), Name: existing.GetName()}.String()
	reference := referenceTo(template)
	if !Holds(existing, template.GroupVersionKind().GroupKind(), template.GetName()) {
		return &CollisionError{Binding: name, Holder: existing.BindingSpec().Resource, Refused: reference}
	}
	if owner != nil {
		return &OwnerError{Binding: name, Got: owner.UID, Own: reference.UID}
	}
	return nil
}

// Holds reports whether a binding is for the template of that kind and name, in
// the binding's namespace. One that names no template is for any that needs it.
func Holds(existing binding.Object, kind schema.GroupKind, name string) bool {
	held := existing.BindingSpec().Resource
	return held.Name == "" ||
		held.Name == name && held.Namespace == existing.GetNamespace() &&
			schema.FromAPIVersionAndKind(held.APIVersion, held.Kind).GroupKind() == kind
}

func describe(r workv1alpha2.ObjectReference) string {
	return fmt.Sprintf("%s %s %s", r.APIVersion, r.Kind, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
}

func bindMetadata(existing binding.Object, in BindInput, state string) {
	existing.SetName(binding.Name(in.Template.GetName(), in.Template.GetKind()))
	existing.SetNamespace(in.Template.GetNamespace())
	existing.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(in.Template, in.Template.GroupVersionKind()),
	})
	// The API server refuses new finalizers on what is being deleted.
	finalizer := binding.Finalizer(existing)
	if existing.GetDeletionTimestamp() == nil && !slices.Contains(existing.GetFinalizers(), finalizer) {
		existing.SetFinalizers(append(slices.Clone(existing.GetFinalizers()), finalizer))
	}
	ClaimOf(in.Policy).Apply(existing)
	annotations := copyOf(existing.GetAnnotations())
	annotations[TemplateStateAnnotation] = state
	delete(annotations, UserStateAnnotation)
	if in.UserState != "" {
		annotations[UserStateAnnotation] = in.UserState
	}
	store(existing, copyOf(existing.GetLabels()), annotations)
}

func bindTemplate(existing binding.Object, in BindInput, reference workv1alpha2.ObjectReference) {
	spec := existing.BindingSpec()
	spec.Resource = reference
	spec.Replicas = in.Replicas
	spec.ReplicaRequirements = in.Requirements.DeepCopy()
	spec.Components = nil
	for i := range in.Components {
		spec.Components = append(spec.Components, *in.Components[i].DeepCopy())
	}
}

func bindPolicy(existing binding.Object, policy *policyv1alpha1.PropagationSpec) {
	spec := existing.BindingSpec()
	spec.PropagateDeps = policy.PropagateDeps
	spec.SchedulerName = policy.SchedulerName
	spec.Placement = policy.Placement.DeepCopy()
	spec.Failover = policy.Failover.DeepCopy()
	spec.ConflictResolution = policy.ConflictResolution
	spec.PreserveResourcesOnDeletion = nil
	if policy.PreserveResourcesOnDeletion != nil {
		spec.PreserveResourcesOnDeletion = new(*policy.PreserveResourcesOnDeletion)
	}
	spec.Suspension = Suspend(policy.Suspension, spec.Suspension)
}

// bindNamespaced sets what only bindings of namespaced templates have.
func bindNamespaced(spec *workv1alpha2.ResourceBindingSpec, in BindInput) {
	spec.SchedulePriority = nil
	if in.SchedulePriority != nil {
		spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: *in.SchedulePriority}
	}
	spec.WorkloadAffinityGroups = nil
	if in.WorkloadAffinity {
		spec.WorkloadAffinityGroups = AffinityGroups(&in.Policy.PropagationSpec().Placement, in.Template.GetLabels())
	}
}
