package policy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// BindingInput holds the objects from which UpdateBinding updates a binding. They are not modified, and
// the binding shares no memory with them.
type BindingInput struct {
	// Template is the stored template, with the claim. Its UID and resourceVersion are copied to the
	// binding.
	Template *unstructured.Unstructured
	Policy   Object

	// Components are the template's components. If they are set, Replicas is 0 and Requirements is nil.
	// All three fields are zero for a template that is not a workload.
	Components   []workv1alpha2.Component
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements

	// SchedulePriority is the value of the policy's PriorityClass, or nil if it has none.
	SchedulePriority *int32
	// WorkloadAffinity reports whether the feature gate WorkloadAffinity is enabled.
	WorkloadAffinity bool
	// UserState is the value of Activation.UserState.
	UserState string
}

// OwnerError reports that a binding belongs to another object than the template, usually to a deleted
// template with the same name. In this case, the error disappears when the garbage collector has
// deleted the binding.
type OwnerError struct {
	Binding string
	// Owner is the object to which the binding belongs.
	Owner       metav1.OwnerReference
	ExpectedUID types.UID
}

// Error implements error.
func (o *OwnerError) Error() string {
	return fmt.Sprintf("binding %s belongs to %s %s %s, which has a different owner reference UID: %q, while the template has %q; "+
		"the template gets a binding when that binding is deleted",
		o.Binding, o.Owner.APIVersion, o.Owner.Kind, o.Owner.Name, o.Owner.UID, o.ExpectedUID)
}

// UpdateBinding updates a binding from its template and the claiming policy. A new binding has only its
// name, and also gets its namespace, owner and finalizer. Fields of other writers (clusters, eviction
// tasks, requiredBy, rescheduling, scheduling suspension, status) do not change. If the binding belongs
// to another object, UpdateBinding returns an *OwnerError and changes nothing.
func UpdateBinding(existing binding.Object, in BindingInput) error {
	reference := referenceTo(in.Template)
	if err := CheckBindingOwner(existing, in.Template); err != nil {
		return err
	}
	state, err := RelevantHash(in.Template)
	if err != nil {
		return err
	}
	recorded := existing.BindingSpec().Resource
	isUnchanged := existing.GetAnnotations()[policyv1alpha1.TemplateStateAnnotation] == state && recorded.UID == reference.UID
	if isUnchanged && recorded.ResourceVersion != "" {
		reference.ResourceVersion = recorded.ResourceVersion
	}
	bindMetadata(existing, in, state)
	bindTemplate(existing, in, reference)
	bindPolicy(existing, in.Policy.PropagationSpec())
	if binding.IsNamespaced(existing) {
		bindNamespacedFields(existing.BindingSpec(), in)
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

// CheckBindingOwner returns an *OwnerError if the binding belongs to an object other than the template.
// Objects are compared by UID, so the API version in which the template was read does not matter.
func CheckBindingOwner(existing binding.Object, template *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(existing)
	if owner == nil {
		if binding.IsOf(existing, template.GroupVersionKind().GroupKind(), template.GetName()) {
			return nil
		}
		held := existing.BindingSpec().Resource
		owner = &metav1.OwnerReference{APIVersion: held.APIVersion, Kind: held.Kind, Name: held.Name, UID: held.UID}
	}
	if owner.UID == template.GetUID() {
		return nil
	}
	name := types.NamespacedName{Namespace: existing.GetNamespace(), Name: existing.GetName()}.String()
	return &OwnerError{Binding: name, Owner: *owner, ExpectedUID: template.GetUID()}
}

func bindMetadata(existing binding.Object, in BindingInput, state string) {
	existing.SetNamespace(in.Template.GetNamespace())
	existing.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(in.Template, in.Template.GroupVersionKind()),
	})
	// The API server rejects new finalizers on an object that is being deleted.
	finalizer := binding.Finalizer(existing)
	if existing.GetDeletionTimestamp() == nil && !slices.Contains(existing.GetFinalizers(), finalizer) {
		existing.SetFinalizers(append(slices.Clone(existing.GetFinalizers()), finalizer))
	}
	ClaimOf(in.Policy).Apply(existing)
	annotations := copyMap(existing.GetAnnotations())
	annotations[policyv1alpha1.TemplateStateAnnotation] = state
	delete(annotations, policyv1alpha1.UserStateAnnotation)
	if in.UserState != "" {
		annotations[policyv1alpha1.UserStateAnnotation] = in.UserState
	}
	setMetadata(existing, copyMap(existing.GetLabels()), annotations)
}

func bindTemplate(existing binding.Object, in BindingInput, reference workv1alpha2.ObjectReference) {
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
	spec.Suspension = MergeSuspension(policy.Suspension, spec.Suspension)
}

// bindNamespacedFields sets the fields that only bindings of namespaced templates have.
func bindNamespacedFields(spec *workv1alpha2.ResourceBindingSpec, in BindingInput) {
	spec.SchedulePriority = nil
	if in.SchedulePriority != nil {
		spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: *in.SchedulePriority}
	}
	spec.WorkloadAffinityGroups = nil
	if in.WorkloadAffinity {
		spec.WorkloadAffinityGroups = WorkloadAffinityGroups(&in.Policy.PropagationSpec().Placement, in.Template.GetLabels())
	}
}
