// Package promotion answers: what does an object that a member has on its own become
// when the control plane takes it over? A template, and a policy that leaves the
// object where it is.
//
// Invariants:
//   - The template holds what a user would have written, and nothing that belongs to
//     the cluster it was read from or to a control plane that managed it before.
//   - The object in the member is taken over as it is, never made anew.
//   - The policy selects this one object and names this one cluster.
package promotion

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

// Template is the member object as a template. It may take over what the member
// has: without that wish the control plane would leave an object of others alone. A
// wish that the object already bears stays.
func Template(memberObject *unstructured.Unstructured) *unstructured.Unstructured {
	template := memberObject.DeepCopy()
	wish, wished := template.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]
	work.Release(template)
	work.Prune(template)
	if !wished {
		wish = workv1alpha2.ResourceConflictResolutionOverwrite
	}
	annotations := template.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = wish
	template.SetAnnotations(annotations)
	return template
}

// Manager names the Work that keeps a member object already; empty means that
// nobody does.
func Manager(memberObject *unstructured.Unstructured) string {
	if memberObject.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] != workv1alpha1.ManagedByKarmadaLabelValue {
		return ""
	}
	annotations := memberObject.GetAnnotations()
	return annotations[workv1alpha1.WorkNamespaceAnnotation] + "/" + annotations[workv1alpha1.WorkNameAnnotation]
}

// Policy is the policy that keeps an object in the cluster where it is: of the
// namespace of the template, or cluster-wide for an object without one. An empty
// name means the one that the object has by rule. With dependencies, what the object
// needs follows it.
func Policy(template *unstructured.Unstructured, cluster, name string, dependencies bool) policy.Object {
	kind := template.GroupVersionKind()
	name = cmp.Or(name, policy.NameFor(kind, template.GetNamespace(), template.GetName()))
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
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: policyv1alpha1.ResourceKindClusterPropagationPolicy}, ObjectMeta: meta, Spec: spec,
		}
	}
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: policyv1alpha1.ResourceKindPropagationPolicy}, ObjectMeta: meta, Spec: spec,
	}
}

// Refuse tells why an object can be no template. Nil means that it can.
func Refuse(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if reach.DefaultSkippedAPIs().Skips(kind) {
		return fmt.Errorf("objects of kind %s (%s) are never propagated, so that there is nothing to promote them for", kind.Kind, object.GetAPIVersion())
	}
	if (reach.SkippedNamespaces{}).Skips(kind, object.GetNamespace(), object.GetName()) {
		return fmt.Errorf("%s %s belongs to Karmada itself, of which nothing is ever propagated", kind.Kind, Reference(object))
	}
	return nil
}

// Reference is namespace/name, or the name alone.
func Reference(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
