package binding

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/reach"
)

// withinReach returns a *reach.RefusedError for a binding that refers to what it must not
// refer to, or to what is never propagated. It returns other errors when it cannot
// tell. The scope of the kind is not asked for: no object is found in another one.
func (r *reconciler) withinReach(ctx context.Context, bound binding.Object) error {
	ref := bound.BindingSpec().Resource
	if refusal := reach.Bound(bound.GetNamespace(), ref, reach.UnknownScope); refusal != nil {
		return refusal
	}
	if refusal := r.options.Propagated.Refuses(kindOf(ref), keyOf(ref)); refusal != nil {
		return refusal
	}
	if !reach.IsSecret(kindOf(ref).GroupKind()) {
		return nil
	}
	clusters, err := r.clustersWith(ctx, keyOf(ref))
	if err != nil {
		return err
	}
	if refusal := reach.Credentials(keyOf(ref), clusters); refusal != nil {
		return refusal
	}
	return nil
}

// clustersWith returns the names of the clusters whose credentials a Secret holds.
func (r *reconciler) clustersWith(ctx context.Context, secret types.NamespacedName) ([]string, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, list, client.MatchingFields{secretField: secret.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the clusters of Secret %s: %w", secret, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// withDelivered adds to a refusal what becomes of the Works that a binding has, which
// were made before it was refused.
func withDelivered(err error, works []*workv1alpha1.Work) error {
	if refusal := new(reach.RefusedError); len(works) == 0 || !errors.As(err, &refusal) {
		return err
	}
	return fmt.Errorf("%w; what was delivered stays in the clusters: delete the binding to remove it", err)
}
