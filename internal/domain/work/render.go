package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/reach"
)

// Overrides are the policies that may concern a template; which of them do is
// found out here.
type Overrides struct {
	Cluster    []override.Object // ClusterOverridePolicies
	Namespaced []override.Object // OverridePolicies of the template's namespace
	// Allowed is what they may change beyond what an object says.
	Allowed override.Allowed
}

// Input is all that the Work of one target of a binding is made of.
type Input struct {
	Template *unstructured.Unstructured
	Binding  binding.Object
	Cluster  *clusterv1alpha1.Cluster
	// Target is the entry for the cluster in binding.Targets.
	Target workv1alpha2.TargetCluster
	// Revise sets the replicas of an object, which it may change or replace. Nil
	// when nothing can do that for the template's kind.
	Revise    func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	Overrides Overrides
	// PermanentID is that of the stored Work, or a new one. Empty leaves it to
	// admission.
	PermanentID string
	// InjectState hands the state of an evicted predecessor to the target.
	InjectState bool
}

// Render makes the Work that one target of a binding should have. A binding
// without a permanent id has none yet: Works are found, and deleted, by that id,
// and an empty one would find those of other bindings.
func Render(in Input) (*workv1alpha1.Work, error) {
	if binding.PermanentID(in.Binding) == "" {
		return nil, fmt.Errorf("binding %q has no label %s yet, which admission sets", in.Binding.GetName(), binding.PermanentIDLabel(in.Binding))
	}
	spec := in.Binding.BindingSpec()
	manifest, err := scale(in)
	if err != nil {
		return nil, err
	}
	manifest, applied, err := in.Overrides.Allowed.Apply(manifest, in.Cluster, in.Overrides.Cluster, in.Overrides.Namespaced)
	if err != nil {
		return nil, err
	}
	if in.InjectState {
		state, err := preservedState(spec, in.Target.Name)
		if err != nil {
			return nil, err
		}
		addLabels(manifest, state)
	}
	resolution := conflictResolution(manifest, in.Binding)
	id := map[string]string{binding.PermanentIDLabel(in.Binding): binding.PermanentID(in.Binding)}
	origin := merged(binding.Coordinates(in.Binding), map[string]string{
		workv1alpha2.ResourceConflictResolutionAnnotation: resolution,
	})

	rendered := carrier(manifest, in.Cluster.Name)
	rendered.Labels = id
	rendered.Annotations = merged(origin, annotationsOf(applied))
	rendered.Spec.SuspendDispatching = new(binding.Suspended(spec, in.Target.Name))
	rendered.Spec.PreserveResourcesOnDeletion = new(spec.PreserveResourcesOnDeletion != nil && *spec.PreserveResourcesOnDeletion)

	addLabels(manifest, id)
	addAnnotations(manifest, origin)
	return rendered, load(rendered, manifest, in.Template, in.PermanentID)
}

// OwnedInput is all that a Work without a binding is made of.
type OwnedInput struct {
	Template *unstructured.Unstructured
	Cluster  *clusterv1alpha1.Cluster
	// Owner controls the Work, which is garbage when the owner is gone. It is
	// cluster-scoped, like the propagated Namespace itself, or the Cluster.
	Owner metav1.OwnerReference
	// ClusterOverrides are ClusterOverridePolicies; others do not apply.
	ClusterOverrides []override.Object
	// Allowed is what they may change beyond what an object says.
	Allowed override.Allowed
	// PermanentID is that of the stored Work, or a new one. Empty leaves it to
	// admission.
	PermanentID string
}

// RenderOwned makes the Work of an object that goes to a cluster without a policy,
// such as a Namespace. It says nothing on conflicts, so that an object which the
// member already has on its own is left alone.
func RenderOwned(in OwnedInput) (*workv1alpha1.Work, error) {
	manifest, applied, err := in.Allowed.Apply(in.Template, in.Cluster, in.ClusterOverrides, nil)
	if err != nil {
		return nil, err
	}
	rendered := carrier(manifest, in.Cluster.Name)
	rendered.Annotations = annotationsOf(applied)
	rendered.OwnerReferences = []metav1.OwnerReference{in.Owner}
	return rendered, load(rendered, manifest, in.Template, in.PermanentID)
}

// scale is a copy of the template with the target's share of replicas and
// completions. The scheduler's figures win over the template's.
func scale(in Input) (*unstructured.Unstructured, error) {
	spec := in.Binding.BindingSpec()
	manifest := in.Template.DeepCopy()
	if in.Revise != nil && binding.IsWorkload(spec) {
		var err error
		if manifest, err = in.Revise(manifest, int64(in.Target.Replicas)); err != nil {
			return nil, fmt.Errorf("setting %d replicas for cluster %q: %w", in.Target.Replicas, in.Target.Name, err)
		}
	}
	if err := divideCompletions(manifest, spec, in.Target.Name, string(in.Template.GetUID())); err != nil {
		return nil, err
	}
	for _, violation := range reach.IdentityOf(in.Template).Violations(reach.IdentityOf(manifest)) {
		return nil, fmt.Errorf("setting %d replicas for cluster %q: the interpreter changed %q: %w", in.Target.Replicas, in.Target.Name, violation.Path, violation)
	}
	return manifest, nil
}

// carrier is the empty Work for a manifest. It is named after what the manifest is
// in the end: an override may have renamed it.
func carrier(manifest *unstructured.Unstructured, cluster string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:  ExecutionNamespace(cluster),
		Name:       Name(manifest.GetKind(), manifest.GetNamespace(), manifest.GetName()),
		Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
}

// load completes the manifest and puts it into the Work.
func load(into *workv1alpha1.Work, manifest, template *unstructured.Unstructured, permanentID string) error {
	Prune(manifest)
	markOrigin(manifest, template, into)
	if permanentID != "" {
		addLabels(into, map[string]string{workv1alpha1.WorkPermanentIDLabel: permanentID})
		addLabels(manifest, map[string]string{workv1alpha1.WorkPermanentIDLabel: permanentID})
	}
	markManaged(manifest)
	encoded, err := Encode(manifest)
	if err != nil {
		return err
	}
	into.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	return nil
}

// annotationsOf are the annotations that record which overrides were applied.
func annotationsOf(applied override.Applied) map[string]string {
	annotations := map[string]string{}
	if applied.Cluster != "" {
		annotations[policyv1alpha1.AppliedClusterOverrides] = applied.Cluster
	}
	if applied.Namespaced != "" {
		annotations[policyv1alpha1.AppliedOverrides] = applied.Namespaced
	}
	return annotations
}

// Overridden tells whether overrides are applied to the desired Work, and otherwise
// than to the stored one, which may be empty.
func Overridden(stored, desired *workv1alpha1.Work) bool {
	for _, record := range records {
		if now := desired.Annotations[record]; now != "" && now != stored.Annotations[record] {
			return true
		}
	}
	return false
}
