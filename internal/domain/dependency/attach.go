package dependency

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// claims are the labels of those who decide about bindings.
var claims = [...]string{
	policyv1alpha1.PropagationPolicyPermanentIDLabel,
	policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	networkingv1alpha1.MultiClusterServicePermanentIDLabel,
}

// Peers are the dependents that an attached binding lists beside the one in hand.
// Whoever is in neither is left as it is.
type Peers struct {
	// Present are those that exist.
	Present []*workv1alpha2.ResourceBinding
	// Gone are those that are known not to exist any more.
	Gone sets.Set[types.NamespacedName]
}

// Attach lets the binding of an object follow a dependent: the binding lists the
// dependent with its clusters and bears its mark. A binding without a name
// (binding.New) is filled for creation. Of a binding that a policy claims
// everything else is left to the policy. On error (*policy.OwnerError,
// *policy.CollisionError) nothing is changed.
func Attach(attached binding.Object, object *unstructured.Unstructured, dependent *workv1alpha2.ResourceBinding, peers Peers) error {
	if err := checkHolder(attached, object); err != nil {
		return err
	}
	state, err := policy.RelevantHash(object)
	if err != nil {
		return err
	}
	drop(attached, peers.Gone)
	require(attached, dependent)
	if !Claimed(attached) {
		follow(attached, object, state)
	}
	settle(attached, append(slices.Clone(peers.Present), dependent))
	return nil
}

// Release takes a dependent off an attached binding and reports whether nothing
// needs the binding any more. What the dependents that remain say counts from now
// on.
func Release(attached binding.Object, dependent types.NamespacedName, peers Peers) (needless bool) {
	was := len(attached.BindingSpec().RequiredBy)
	drop(attached, peers.Gone.Clone().Insert(dependent))
	settle(attached, peers.Present)
	return was > 0 && needlessNow(attached)
}

// Requires reports whether an attached binding lists a dependent.
func Requires(attached binding.Object, dependent types.NamespacedName) bool {
	return slices.ContainsFunc(attached.BindingSpec().RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return KeyOf(s) == dependent })
}

// KeyOf names the dependent of a snapshot.
func KeyOf(snapshot workv1alpha2.BindingSnapshot) types.NamespacedName {
	return types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
}

// Claimed reports whether somebody else than dependents decides about a binding.
func Claimed(attached binding.Object) bool {
	marks := attached.GetLabels()
	return slices.ContainsFunc(claims[:], func(label string) bool { return marks[label] != "" })
}

// needlessNow reports whether neither a dependent, nor a policy, nor a past
// schedule says where the object should be.
func needlessNow(attached binding.Object) bool {
	spec := attached.BindingSpec()
	owner := metav1.GetControllerOf(attached)
	return !Claimed(attached) && spec.Placement == nil &&
		len(spec.RequiredBy) == 0 && len(spec.Clusters) == 0 && len(spec.GracefulEvictionTasks) == 0 &&
		owner != nil && owner.UID == spec.Resource.UID
}

// require lists the dependent with the clusters that it is in, in its old place if
// it has one. Clusters that it is leaving are among them until it has left: what it
// needs must not go before it does.
func require(attached binding.Object, dependent *workv1alpha2.ResourceBinding) {
	attached.SetLabels(with(attached.GetLabels(), labelOf(dependent.Namespace, dependent.Name), binding.PermanentID(dependent)))
	snapshot := workv1alpha2.BindingSnapshot{Namespace: dependent.Namespace, Name: dependent.Name}
	for i := range dependent.Spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, *dependent.Spec.Clusters[i].DeepCopy())
	}
	for i := range dependent.Spec.GracefulEvictionTasks {
		task := &dependent.Spec.GracefulEvictionTasks[i]
		if slices.ContainsFunc(snapshot.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == task.FromCluster }) {
			continue
		}
		leaving := workv1alpha2.TargetCluster{Name: task.FromCluster}
		if task.Replicas != nil {
			leaving.Replicas = *task.Replicas
		}
		snapshot.Clusters = append(snapshot.Clusters, leaving)
	}
	spec := attached.BindingSpec()
	i := slices.IndexFunc(spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return KeyOf(s) == KeyOf(snapshot) })
	if i < 0 {
		spec.RequiredBy = append(slices.Clone(spec.RequiredBy), snapshot)
		return
	}
	if !equality.Semantic.DeepEqual(spec.RequiredBy[i], snapshot) {
		spec.RequiredBy = slices.Clone(spec.RequiredBy)
		spec.RequiredBy[i] = snapshot
	}
}

// drop takes dependents off a binding. Marks are short: one that stands for a
// dependent that stays as well is kept.
func drop(attached binding.Object, leaving sets.Set[types.NamespacedName]) {
	spec := attached.BindingSpec()
	var kept []workv1alpha2.BindingSnapshot
	marks := sets.New[string]()
	for _, snapshot := range spec.RequiredBy {
		if !leaving.Has(KeyOf(snapshot)) {
			kept = append(kept, snapshot)
			marks.Insert(labelOf(snapshot.Namespace, snapshot.Name))
		}
	}
	if len(kept) != len(spec.RequiredBy) {
		spec.RequiredBy = kept
	}
	for dependent := range leaving {
		if label := labelOf(dependent.Namespace, dependent.Name); !marks.Has(label) {
			attached.SetLabels(with(attached.GetLabels(), label, ""))
		}
	}
}

func labelOf(namespace, name string) string {
	return workv1alpha2.DependedByLabelPrefix + binding.ReferenceKey(namespace, name)
}

// follow keeps a binding in step with its object when no policy does.
func follow(attached binding.Object, object *unstructured.Unstructured, state string) {
	spec := attached.BindingSpec()
	if owner := metav1.GetControllerOf(attached); owner == nil {
		attached.SetName(binding.Name(object.GetName(), object.GetKind()))
		attached.SetNamespace(object.GetNamespace())
		attached.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(object, object.GroupVersionKind())})
	}
	finalizer := binding.Finalizer(attached)
	if attached.GetDeletionTimestamp() == nil && !slices.Contains(attached.GetFinalizers(), finalizer) {
		attached.SetFinalizers(append(slices.Clone(attached.GetFinalizers()), finalizer))
	}
	reference := referenceTo(object)
	if spec.Resource.UID == reference.UID {
		if spec.Resource.APIVersion != reference.APIVersion && len(spec.RequiredBy) > 1 {
			// Another dependent reads the object in another version; one is enough.
			return
		}
		if recorded := spec.Resource.ResourceVersion; recorded != "" && attached.GetAnnotations()[policy.TemplateStateAnnotation] == state {
			// Only what is written back into its status has changed.
			reference.ResourceVersion = recorded
		}
	}
	spec.Resource = reference
	setAnnotation(attached, policy.TemplateStateAnnotation, state)
}

// settle sets what a binding without a placement takes over from its dependents.
func settle(attached binding.Object, dependents []*workv1alpha2.ResourceBinding) {
	spec := attached.BindingSpec()
	if spec.Placement != nil {
		return
	}
	terms := TermsOf(spec.Resource, dependents)
	spec.ConflictResolution, spec.PreserveResourcesOnDeletion = terms.ConflictResolution, nil
	if len(dependents) > 0 {
		spec.PreserveResourcesOnDeletion = new(terms.PreserveResourcesOnDeletion)
	}
}

func referenceTo(object *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// checkHolder makes sure that a binding is the object's and not that of an
// earlier one, or of another kind of the same name.
func checkHolder(attached binding.Object, object *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(attached)
	if attached.GetName() == "" || owner != nil && owner.UID == object.GetUID() {
		return nil
	}
	name := types.NamespacedName{Namespace: attached.GetNamespace(), Name: attached.GetName()}.String()
	holder, reference := attached.BindingSpec().Resource, referenceTo(object)
	if holder.Name != "" && ThingOf(holder) != ThingOf(reference) {
		return &policy.CollisionError{Binding: name, Holder: holder, Refused: reference}
	}
	if owner != nil {
		return &policy.OwnerError{Binding: name, Got: owner.UID, Own: object.GetUID()}
	}
	return nil
}

// ThingOf names the object of a binding.
func ThingOf(resource workv1alpha2.ObjectReference) Thing {
	return Thing{
		Kind: schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind(),
		Key:  types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name},
	}
}
