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
	"karmada.io/karmada/internal/loop"
)

// readTemplate returns the template of the binding. It returns nil if it is certain that the
// template does not exist. Then the garbage collector is about to delete the binding too. The
// caller must not change the template.
func (r *reconciler) readTemplate(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	return r.templateReader.Get(ctx, kindOf(ref), keyOf(ref))
}

func kindOf(ref workv1alpha2.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

func keyOf(ref workv1alpha2.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// templateTitle returns the name of a template for messages.
func templateTitle(ref workv1alpha2.ObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// isTemplateStale reports whether the template in the cache is older than the version from which
// the binding was made. Works that are made from a stale template would soon be outdated.
// isTemplateStale compares only versions of the same object, because a binding that was restored
// from another control plane contains a version that cannot be compared.
func isTemplateStale(template *unstructured.Unstructured, ref workv1alpha2.ObjectReference) bool {
	if ref.UID == "" || template.GetUID() != ref.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(template.GetResourceVersion(), ref.ResourceVersion)
	return err == nil && order < 0
}

// overridePolicies returns the override policies that may select the template. The policies are
// shared with the cache and must not be changed.
func (r *reconciler) overridePolicies(ctx context.Context, template *unstructured.Unstructured) (work.Overrides, error) {
	found := work.Overrides{Allowed: r.options.Allowed}
	for _, selected := range []string{loop.TemplateKindKey("", template.GetAPIVersion(), template.GetKind()), anyKind} {
		list := &policyv1alpha1.ClusterOverridePolicyList{}
		if err := r.karmada.List(ctx, list, overridesByKind.Matching(selected), client.UnsafeDisableDeepCopy); err != nil {
			return work.Overrides{}, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
		}
		for i := range list.Items {
			found.Cluster = append(found.Cluster, &list.Items[i])
		}
	}
	if template.GetNamespace() == "" {
		return found, nil
	}
	// OverridePolicies are not looked up by kind, because they apply to the result of the
	// ClusterOverridePolicies, which may have another kind than the template.
	list := &policyv1alpha1.OverridePolicyList{}
	if err := r.karmada.List(ctx, list, client.InNamespace(template.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return work.Overrides{}, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range list.Items {
		found.Namespaced = append(found.Namespaced, override.Object(&list.Items[i]))
	}
	return found, nil
}
