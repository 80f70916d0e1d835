package work

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
)

// Overrides are the override policies that may apply to a template. Render selects those that do apply.
type Overrides struct {
	Cluster    []override.Object // ClusterOverridePolicies
	Namespaced []override.Object // OverridePolicies of the template's namespace
	// Allowed specifies the changes that the policies may make outside the object's content, for
	// example to its identity.
	Allowed override.Options
}

// RenderInput contains everything from which the Work for one of a binding's targets is rendered.
type RenderInput struct {
	Template *unstructured.Unstructured
	Binding  binding.Object
	Cluster  *clusterv1alpha1.Cluster
	// Target is the cluster's entry in the result of binding.TargetClusters.
	Target workv1alpha2.TargetCluster
	// ReviseReplicas sets the object's replicas. It may change or replace the object. It is nil if the
	// interpreter cannot set replicas for the template's kind.
	ReviseReplicas func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	Overrides      Overrides
	// PermanentID is the stored Work's permanent ID, or a new ID. If it is empty, admission sets the
	// ID.
	PermanentID string
	// PassPreservedState enables passing an evicted application's state to the target.
	PassPreservedState bool
}

// Render returns the Work for one of the binding's targets. It returns an error for a binding without a
// permanent ID, because a binding's Works are selected and deleted by that ID, so an empty ID would
// select other bindings' Works.
func Render(in RenderInput) (*workv1alpha1.Work, error) {
	if binding.PermanentID(in.Binding) == "" {
		return nil, fmt.Errorf("binding %q has no label %s yet, which admission sets", in.Binding.GetName(), binding.PermanentIDLabel(in.Binding))
	}
	spec := in.Binding.BindingSpec()
	manifest, err := scaledManifest(in)
	if err != nil {
		return nil, err
	}
	manifest, applied, err := in.Overrides.Allowed.Apply(manifest, in.Cluster, in.Overrides.Cluster, in.Overrides.Namespaced)
	if err != nil {
		return nil, err
	}
	if in.PassPreservedState {
		state, err := preservedState(spec, in.Target.Name)
		if err != nil {
			return nil, err
		}
		addLabels(manifest, state)
	}
	resolution := conflictResolution(manifest, in.Binding)
	id := map[string]string{binding.PermanentIDLabel(in.Binding): binding.PermanentID(in.Binding)}
	origin := mergedMap(binding.ReferenceAnnotations(in.Binding), map[string]string{
		workv1alpha2.ResourceConflictResolutionAnnotation: resolution,
	})

	rendered := newWork(manifest, in.Cluster.Name)
	if in.Binding.GetName() == binding.Names(in.Template.GroupVersionKind().GroupKind(), in.Template.GetName())[1] {
		// The name without a hash may belong to the template whose binding has the usual name.
		rendered.Name = Names(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace(), manifest.GetName())[1]
	}
	rendered.Labels = id
	rendered.Annotations = mergedMap(origin, appliedOverrideAnnotations(applied))
	rendered.Annotations[workv1alpha1.RenderedFromAnnotation] = RenderedFrom(in.Binding, in.Target, in.Template.GetResourceVersion())
	rendered.Spec.SuspendDispatching = new(binding.IsDispatchSuspended(in.Binding, in.Target.Name))
	rendered.Spec.PreserveResourcesOnDeletion = new(spec.PreserveResourcesOnDeletion != nil && *spec.PreserveResourcesOnDeletion)

	return rendered, setManifest(rendered, manifest, in.Template, in.PermanentID, id, origin)
}

// RenderForOwnerInput contains everything from which a Work without a binding is rendered.
type RenderForOwnerInput struct {
	Template *unstructured.Unstructured
	Cluster  *clusterv1alpha1.Cluster
	// Owner is the Work's controller. The Work is garbage-collected with its owner. The owner is
	// cluster-scoped, for example the propagated Namespace itself or the Cluster. nil means that no
	// object owns the Work.
	Owner *metav1.OwnerReference
	// ClusterOverrides are the ClusterOverridePolicies that may apply. OverridePolicies do not
	// apply.
	ClusterOverrides []override.Object
	// Allowed specifies the changes that the policies may make outside the object's content, for
	// example to its identity.
	Allowed override.Options
	// PermanentID is the stored Work's permanent ID, or a new ID. If it is empty, admission sets the
	// ID.
	PermanentID string
}

// RenderForOwner returns the Work for an object that is propagated to a cluster without a policy, such
// as a Namespace. It sets no conflict resolution, so an object that already exists in the member is not
// changed.
func RenderForOwner(in RenderForOwnerInput) (*workv1alpha1.Work, error) {
	manifest, applied, err := in.Allowed.Apply(in.Template, in.Cluster, in.ClusterOverrides, nil)
	if err != nil {
		return nil, err
	}
	rendered := newWork(manifest, in.Cluster.Name)
	rendered.Annotations = appliedOverrideAnnotations(applied)
	if in.Owner != nil {
		rendered.OwnerReferences = []metav1.OwnerReference{*in.Owner}
	}
	return rendered, setManifest(rendered, manifest, in.Template, in.PermanentID, nil, nil)
}

// scaledManifest returns a copy of the template with the target's share of replicas and completions,
// and without node ports that the member allocates.
func scaledManifest(in RenderInput) (*unstructured.Unstructured, error) {
	spec := in.Binding.BindingSpec()
	manifest := in.Template.DeepCopy()
	if in.ReviseReplicas != nil && binding.IsWorkload(spec) {
		var err error
		if manifest, err = in.ReviseReplicas(manifest, int64(in.Target.Replicas)); err != nil {
			return nil, fmt.Errorf("setting %d replicas for cluster %q: %w", in.Target.Replicas, in.Target.Name, err)
		}
	}
	removeNodePorts(manifest)
	if err := divideCompletions(manifest, spec, in.Target.Name, string(in.Template.GetUID())); err != nil {
		return nil, err
	}
	for _, violation := range tenancy.IdentityOf(in.Template).Violations(tenancy.IdentityOf(manifest)) {
		return nil, fmt.Errorf("setting %d replicas for cluster %q: the interpreter changed %q: %w", in.Target.Replicas, in.Target.Name,
			violation.Path, violation)
	}
	return manifest, nil
}

// newWork returns a Work without manifests. Its name is computed from the final manifest, because
// an override may have renamed the object.
func newWork(manifest *unstructured.Unstructured, cluster string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:  ExecutionNamespace(cluster),
		Name:       Name(manifest.GetKind(), manifest.GetNamespace(), manifest.GetName()),
		Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
}

// setManifest adds the given labels and annotations to the manifest, and those that every manifest
// needs, and stores the manifest in the given Work.
func setManifest(into *workv1alpha1.Work, manifest, template *unstructured.Unstructured, permanentID string,
	labels, annotations map[string]string) error {
	Prune(manifest)
	labels = mergedMap(manifest.GetLabels(), mergedMap(labels,
		map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}))
	if permanentID != "" {
		addLabels(into, map[string]string{workv1alpha1.WorkPermanentIDLabel: permanentID})
		labels[workv1alpha1.WorkPermanentIDLabel] = permanentID
	}
	annotations = mergedMap(annotations, originAnnotations(template, into))
	setMetadata(manifest, labels, mergedMap(manifest.GetAnnotations(), annotations))
	encoded, err := EncodeManifest(manifest)
	if err != nil {
		return err
	}
	into.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	return nil
}

// appliedOverrideAnnotations returns the annotations that record which overrides were applied.
func appliedOverrideAnnotations(applied override.AppliedRecord) map[string]string {
	annotations := map[string]string{
		policyv1alpha1.AppliedClusterOverrides: applied.Cluster,
		policyv1alpha1.AppliedOverrides:        applied.Namespaced,
		policyv1alpha1.IneffectiveOverrides:    applied.WithoutEffect,
	}
	maps.DeleteFunc(annotations, func(_, text string) bool { return text == "" })
	return annotations
}

// HasNewOverrides reports whether the overrides that were applied to the desired Work differ from the
// stored Work's overrides. The stored Work may be empty.
func HasNewOverrides(stored, desired *workv1alpha1.Work) bool {
	return hasNewAnnotation(stored, desired, policyv1alpha1.AppliedClusterOverrides) ||
		hasNewAnnotation(stored, desired, policyv1alpha1.AppliedOverrides)
}

// NewIneffectiveOverrides returns the desired Work's overriders without effect, or nil if the stored
// Work lists the same overriders. The stored Work may be empty.
func NewIneffectiveOverrides(stored, desired *workv1alpha1.Work) []string {
	if !hasNewAnnotation(stored, desired, policyv1alpha1.IneffectiveOverrides) {
		return nil
	}
	return strings.Split(desired.Annotations[policyv1alpha1.IneffectiveOverrides], "\n")
}

func hasNewAnnotation(stored, desired *workv1alpha1.Work, name string) bool {
	text := desired.Annotations[name]
	return text != "" && text != stored.Annotations[name]
}
