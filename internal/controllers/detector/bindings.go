package detector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// policyIDField is the index of bindings by the permanent ID of the policy that claims them.
const policyIDField = "detector/policy-permanent-id"

func (d *detector) indexBindings(indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		// Before the manager starts, IndexField does not wait, so the context has no effect.
		if err := indexer.IndexField(context.Background(), object, policyIDField, policyIDs); err != nil {
			return fmt.Errorf("indexing bindings by policy: %w", err)
		}
	}
	return nil
}

func policyIDs(object client.Object) []string {
	var ids []string
	for _, key := range []string{
		policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	} {
		if id := object.GetLabels()[key]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// templatesBoundBy returns the templates whose bindings carry the claim.
func (d *detector) templatesBoundBy(ctx context.Context, claim policy.Claim) ([]templateRef, error) {
	var found []templateRef
	options := []client.ListOption{client.MatchingFields{policyIDField: claim.ID}, client.UnsafeDisableDeepCopy}
	if !claim.IsCluster() {
		options = append(options, client.InNamespace(claim.Namespace))
	}
	namespaced := &workv1alpha2.ResourceBindingList{}
	if err := d.karmada.List(ctx, namespaced, options...); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings of policy %s: %w", claim, err)
	}
	for i := range namespaced.Items {
		found = append(found, refFromBinding(&namespaced.Items[i].Spec.Resource))
	}
	if !claim.IsCluster() {
		return found, nil
	}
	cluster := &workv1alpha2.ClusterResourceBindingList{}
	if err := d.karmada.List(ctx, cluster, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceBindings of policy %s: %w", claim, err)
	}
	for i := range cluster.Items {
		found = append(found, refFromBinding(&cluster.Items[i].Spec.Resource))
	}
	return found, nil
}

// bindingOf returns the binding with the name that the binding of the template has, or nil. It
// may belong to another template.
func (d *detector) bindingOf(ctx context.Context, r templateRef) (binding.Object, error) {
	found := binding.New(r.key.Namespace != "")
	key := client.ObjectKey{Namespace: r.key.Namespace, Name: binding.Name(r.key.Name, r.kind.Kind)}
	err := d.karmada.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	return found, nil
}
