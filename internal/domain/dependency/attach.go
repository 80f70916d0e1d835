package dependency

import (
	"slices"
	"time"

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

// claimLabels are the labels with which policies and multi-cluster services claim a binding.
var claimLabels = [...]string{
	policyv1alpha1.PropagationPolicyPermanentIDLabel,
	policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	networkingv1alpha1.MultiClusterServicePermanentIDLabel,
}

// OtherDependents are the other dependents in an attached binding's spec.requiredBy. A dependent in
// spec.requiredBy that is neither in Existing nor in Deleted stays unchanged.
type OtherDependents struct {
	// Existing are the dependents that exist.
	Existing []*workv1alpha2.ResourceBinding
	// Deleted are the dependents that were observed to be deleted.
	Deleted sets.Set[types.NamespacedName]
}

// Attach makes the object's binding follow the given dependent to its clusters. It adds the dependent
// with its clusters to spec.requiredBy and sets the dependent's label. For a new binding, which has
// only its name, Attach also fills in the fields that a new binding needs. If a policy claims the
// binding, all other fields stay unchanged. On an error, which is a *policy.OwnerError, nothing is
// changed.
func Attach(attached binding.Object, object *unstructured.Unstructured, dependent *workv1alpha2.ResourceBinding, peers OtherDependents,
	now time.Time) error {
	if err := policy.CheckBindingOwner(attached, object); err != nil {
		return err
	}
	hash, err := policy.RelevantHash(object)
	if err != nil {
		return err
	}
	addDependent(attached, dependent)
	before := binding.ExpectedClusters(attached.BindingSpec())
	removeDependents(attached, peers.Deleted)
	recordDepartures(attached, before, now)
	if !IsClaimed(attached) {
		syncWithObject(attached, object, hash)
	}
	applyTerms(attached, append(slices.Clone(peers.Existing), dependent))
	return nil
}

// Release removes a dependent that no longer refers to the object from the attached binding, and
// reports whether the binding is unneeded. The dependent stays listed with those clusters in which its
// copy may still refer to the object. From then on, the binding has the remaining dependents' settings.
func Release(attached binding.Object, dependent *workv1alpha2.ResourceBinding, peers OtherDependents, now time.Time) (unneeded bool) {
	spec := attached.BindingSpec()
	before, listed := binding.ExpectedClusters(spec), len(spec.RequiredBy)
	removed, remaining := peers.Deleted.Clone(), peers.Existing
	if retainDependent(attached, dependent) {
		remaining = append(slices.Clone(remaining), dependent)
	} else {
		removed = removed.Insert(keyOf(dependent))
	}
	removeDependents(attached, removed)
	recordDepartures(attached, before, now)
	applyTerms(attached, remaining)
	return listed > 0 && isUnneeded(attached)
}

// HasDependent reports whether the dependent is in the attached binding's spec.requiredBy.
func HasDependent(attached binding.Object, dependent types.NamespacedName) bool {
	return indexOf(attached.BindingSpec(), dependent) >= 0
}

// DependentKey returns the key of the dependent that the snapshot describes.
func DependentKey(snapshot workv1alpha2.BindingSnapshot) types.NamespacedName {
	return types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
}

func keyOf(dependent *workv1alpha2.ResourceBinding) types.NamespacedName {
	return types.NamespacedName{Namespace: dependent.Namespace, Name: dependent.Name}
}

// IsClaimed reports whether a policy or a multi-cluster service claims the binding.
func IsClaimed(attached binding.Object) bool {
	labels := attached.GetLabels()
	return slices.ContainsFunc(claimLabels[:], func(label string) bool { return labels[label] != "" })
}

// isUnneeded reports whether the binding can be deleted, because no dependent, policy or earlier
// scheduling selects clusters for it.
func isUnneeded(attached binding.Object) bool {
	spec := attached.BindingSpec()
	owner := metav1.GetControllerOf(attached)
	return !IsClaimed(attached) && spec.Placement == nil &&
		len(spec.RequiredBy) == 0 && len(spec.Clusters) == 0 && len(spec.GracefulEvictionTasks) == 0 &&
		owner != nil && owner.UID == spec.Resource.UID
}

// SnapshotOf returns the entry of spec.requiredBy with the dependent's clusters. Clusters from which
// the dependent is being evicted stay listed until the eviction ends, because the dependencies must not
// be deleted earlier.
func SnapshotOf(dependent *workv1alpha2.ResourceBinding) workv1alpha2.BindingSnapshot {
	snapshot := workv1alpha2.BindingSnapshot{Namespace: dependent.Namespace, Name: dependent.Name}
	for i := range dependent.Spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, *dependent.Spec.Clusters[i].DeepCopy())
	}
	for i := range dependent.Spec.GracefulEvictionTasks {
		task := &dependent.Spec.GracefulEvictionTasks[i]
		if hasCluster(snapshot.Clusters, task.FromCluster) {
			continue
		}
		evicted := workv1alpha2.TargetCluster{Name: task.FromCluster}
		if task.Replicas != nil {
			evicted.Replicas = *task.Replicas
		}
		snapshot.Clusters = append(snapshot.Clusters, evicted)
	}
	return snapshot
}

func hasCluster(clusters []workv1alpha2.TargetCluster, name string) bool {
	return slices.ContainsFunc(clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == name })
}

// addDependent adds or updates the dependent's snapshot. An existing snapshot keeps its position, and
// keeps its clusters to which dispatching of the dependent is suspended.
func addDependent(attached binding.Object, dependent *workv1alpha2.ResourceBinding) {
	attached.SetLabels(withEntry(attached.GetLabels(), dependedByLabel(dependent.Namespace, dependent.Name), binding.PermanentID(dependent)))
	snapshot := SnapshotOf(dependent)
	spec := attached.BindingSpec()
	if i := indexOf(spec, keyOf(dependent)); i >= 0 {
		for _, before := range spec.RequiredBy[i].Clusters {
			// The dependent may still run in a cluster whose deletions are suspended.
			if binding.IsDispatchSuspended(dependent, before.Name) && !hasCluster(snapshot.Clusters, before.Name) {
				snapshot.Clusters = append(snapshot.Clusters, before)
			}
		}
	}
	putSnapshot(spec, snapshot)
	RecordSuspension(attached, dependent)
}

// putSnapshot adds a dependent's snapshot to spec.requiredBy, or replaces the dependent's earlier
// snapshot.
func putSnapshot(spec *workv1alpha2.ResourceBindingSpec, snapshot workv1alpha2.BindingSnapshot) {
	i := indexOf(spec, DependentKey(snapshot))
	if i < 0 {
		spec.RequiredBy = append(slices.Clone(spec.RequiredBy), snapshot)
		return
	}
	if !equality.Semantic.DeepEqual(spec.RequiredBy[i], snapshot) {
		spec.RequiredBy = slices.Clone(spec.RequiredBy)
		spec.RequiredBy[i] = snapshot
	}
}

// indexOf returns the dependent's index in spec.requiredBy, or -1 if it is not listed.
func indexOf(spec *workv1alpha2.ResourceBindingSpec, dependent types.NamespacedName) int {
	return slices.IndexFunc(spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return DependentKey(s) == dependent })
}

// recordDepartures records the clusters that the binding has left. before are the clusters that it
// expected earlier.
func recordDepartures(attached binding.Object, before sets.Set[string], now time.Time) {
	binding.RecordDepartures(attached, sets.List(before.Difference(binding.ExpectedClusters(attached.BindingSpec()))), now)
}

// removeDependents removes the given dependents, their labels and their suspensions from the binding.
// Labels contain hashes of names, so two dependents can have the same label. A label that a remaining
// dependent also has is kept.
func removeDependents(attached binding.Object, removed sets.Set[types.NamespacedName]) {
	spec := attached.BindingSpec()
	var remaining []workv1alpha2.BindingSnapshot
	remainingLabels := sets.New[string]()
	for _, snapshot := range spec.RequiredBy {
		if !removed.Has(DependentKey(snapshot)) {
			remaining = append(remaining, snapshot)
			remainingLabels.Insert(dependedByLabel(snapshot.Namespace, snapshot.Name))
		}
	}
	if len(remaining) != len(spec.RequiredBy) {
		spec.RequiredBy = remaining
	}
	for dependent := range removed {
		if label := dependedByLabel(dependent.Namespace, dependent.Name); !remainingLabels.Has(label) {
			attached.SetLabels(withEntry(attached.GetLabels(), label, ""))
		}
		binding.RecordSuspendedDependent(attached, dependent, func(string) bool { return false })
	}
}

func dependedByLabel(namespace, name string) string {
	return workv1alpha2.DependedByLabelPrefix + binding.ReferenceKey(namespace, name)
}

// syncWithObject updates a binding that no policy claims to its object's current state.
func syncWithObject(attached binding.Object, object *unstructured.Unstructured, hash string) {
	spec := attached.BindingSpec()
	if owner := metav1.GetControllerOf(attached); owner == nil {
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
			// Another dependent refers to another API version. Keep the recorded one.
			return
		}
		if recorded := spec.Resource.ResourceVersion; recorded != "" &&
			attached.GetAnnotations()[policyv1alpha1.TemplateStateAnnotation] == hash {
			// Only the object's status changed.
			reference.ResourceVersion = recorded
		}
	}
	spec.Resource = reference
	setAnnotation(attached, policyv1alpha1.TemplateStateAnnotation, hash)
}

// applyTerms sets the settings that a binding without a placement takes from its dependents.
func applyTerms(attached binding.Object, dependents []*workv1alpha2.ResourceBinding) {
	spec := attached.BindingSpec()
	if spec.Placement != nil {
		return
	}
	terms := MergeSettings(spec.Resource, dependents)
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

// ObjectOf returns the ID of a binding's object.
func ObjectOf(resource workv1alpha2.ObjectReference) ObjectID {
	return ObjectID{
		Kind: schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind(),
		Key:  types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name},
	}
}
