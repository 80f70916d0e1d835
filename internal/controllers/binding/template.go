package binding

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/work"
)

// cachePatience is how long to wait for the first list of a kind. A worker that
// waited for a kind which cannot be listed would serve no other binding.
const cachePatience = 5 * time.Second

// template is what the binding propagates, nil when it is known to be gone: then
// the binding goes too. It is shared with the cache and must not be changed.
//
// What the cache does not have is asked for, since a watch may lag behind the one
// that made the binding.
func (r *reconciler) template(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	limited, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	template := empty(ref)
	err := r.karmada.Get(limited, key, template, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		template = empty(ref)
		err = r.live.Get(ctx, key, template)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	}
	return template, nil
}

// reference names a template in messages.
func reference(ref workv1alpha2.ObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

func empty(ref workv1alpha2.ObjectReference) *unstructured.Unstructured {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(ref.APIVersion)
	template.SetKind(ref.Kind)
	return template
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
	var found work.Overrides
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
