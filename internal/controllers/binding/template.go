package binding

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/work"
)

// template is what the binding propagates, nil when it is known to be gone: then
// the binding goes too. It must not be changed.
func (r *reconciler) template(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	return r.templates.Get(ctx, kindOf(ref), keyOf(ref))
}

func kindOf(ref workv1alpha2.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

func keyOf(ref workv1alpha2.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// reference names a template in messages.
func reference(ref workv1alpha2.ObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// stale tells that the template is older than what the binding was made from, so
// that Works made of it would soon be wrong. Versions of one object only are
// compared: those of another control plane, from which the binding may have been
// restored, say nothing.
func stale(template *unstructured.Unstructured, ref workv1alpha2.ObjectReference) bool {
	if ref.UID == "" || template.GetUID() != ref.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(template.GetResourceVersion(), ref.ResourceVersion)
	return err == nil && order < 0
}

// overrides are the policies that may concern the template. They are shared with
// the cache and must not be changed.
func (r *reconciler) overrides(ctx context.Context, template *unstructured.Unstructured) (work.Overrides, error) {
	found := work.Overrides{Allowed: r.options.Allowed}
	for _, selected := range []string{kindKey("", template.GetAPIVersion(), template.GetKind()), anyKind} {
		list := &policyv1alpha1.ClusterOverridePolicyList{}
		if err := r.karmada.List(ctx, list, client.MatchingFields{selectedKindField: selected}, client.UnsafeDisableDeepCopy); err != nil {
			return work.Overrides{}, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
		}
		for i := range list.Items {
			found.Cluster = append(found.Cluster, &list.Items[i])
		}
	}
	if template.GetNamespace() == "" {
		return found, nil
	}
	// Not by kind: these see what the others made of the template.
	list := &policyv1alpha1.OverridePolicyList{}
	if err := r.karmada.List(ctx, list, client.InNamespace(template.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return work.Overrides{}, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range list.Items {
		found.Namespaced = append(found.Namespaced, override.Object(&list.Items[i]))
	}
	return found, nil
}
