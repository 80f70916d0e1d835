package ownership

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
)

// newPromotedTemplate returns the template for a member object. It sets the conflict resolution Overwrite,
// because otherwise the control plane would not take over an object that it does not own. If the
// object already has a conflict resolution, it is kept.
func newPromotedTemplate(memberObject *unstructured.Unstructured) *unstructured.Unstructured {
	template := memberObject.DeepCopy()
	resolution, found := template.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]
	work.Release(template)
	work.Prune(template)
	if !found {
		resolution = workv1alpha2.ResourceConflictResolutionOverwrite
	}
	annotations := template.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = resolution
	template.SetAnnotations(annotations)
	return template
}

// managingWorkOf returns the namespace and name of the Work that manages a member object, or ""
// if the object is not managed.
func managingWorkOf(memberObject *unstructured.Unstructured) string {
	if memberObject.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] != workv1alpha1.ManagedByKarmadaLabelValue {
		return ""
	}
	annotations := memberObject.GetAnnotations()
	return annotations[workv1alpha1.WorkNamespaceAnnotation] + "/" + annotations[workv1alpha1.WorkNameAnnotation]
}

// newPromotionPolicy returns the policy that keeps an object in its cluster: a PropagationPolicy in the
// namespace of the template, or a ClusterPropagationPolicy for a cluster-scoped object. If name is
// empty, a name is generated. If dependencies is true, the dependencies of the object are
// propagated too.
func newPromotionPolicy(template *unstructured.Unstructured, cluster, name string, dependencies bool) policy.Object {
	kind := template.GroupVersionKind()
	name = cmp.Or(name, policy.GeneratedName(kind, template.GetNamespace(), template.GetName()))
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{
			APIVersion: template.GetAPIVersion(), Kind: kind.Kind,
			Namespace: template.GetNamespace(), Name: template.GetName(),
		}},
		Placement:          policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}},
		PropagateDeps:      dependencies,
		ConflictResolution: policyv1alpha1.ConflictOverwrite,
	}
	meta := metav1.ObjectMeta{Namespace: template.GetNamespace(), Name: name}
	apiVersion := policyv1alpha1.GroupVersion.String()
	if meta.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: policyv1alpha1.ResourceKindClusterPropagationPolicy}, ObjectMeta: meta,
			Spec: spec,
		}
	}
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: policyv1alpha1.ResourceKindPropagationPolicy}, ObjectMeta: meta, Spec: spec,
	}
}

// validatePromotable returns an error if an object cannot be a template.
func validatePromotable(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if tenancy.DefaultSkippedAPIs().Skips(kind) {
		return fmt.Errorf("objects of kind %s (%s) are never propagated, so they cannot be promoted", kind.Kind, object.GetAPIVersion())
	}
	if (tenancy.SkippedNamespaces{}).Skips(kind, object.GetNamespace(), object.GetName()) {
		return fmt.Errorf("%s %s belongs to Karmada itself and is never propagated", kind.Kind, namespacedName(object))
	}
	return nil
}

// namespacedName returns namespace/name, or only the name for a cluster-scoped object.
func namespacedName(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
