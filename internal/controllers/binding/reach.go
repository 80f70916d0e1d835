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
	"karmada.io/karmada/internal/domain/tenancy"
)

// verifyReference returns a *tenancy.ForbiddenError for a binding that refers to an object outside
// its scope, or to an object that is never propagated. It returns another error if the check fails.
// It does not look up whether the kind is namespaced, because the read of an object in the wrong
// scope finds nothing anyway.
func (r *reconciler) verifyReference(ctx context.Context, bound binding.Object) error {
	ref := bound.BindingSpec().Resource
	if rejection := tenancy.CheckReference(bound.GetNamespace(), ref, tenancy.UnknownScope); rejection != nil {
		return rejection
	}
	if rejection := r.options.Propagated.Check(kindOf(ref), keyOf(ref)); rejection != nil {
		return rejection
	}
	if !tenancy.IsSecret(kindOf(ref).GroupKind()) {
		return nil
	}
	clusters, err := r.clustersWithCredentials(ctx, keyOf(ref))
	if err != nil {
		return err
	}
	if rejection := tenancy.CheckCredentials(keyOf(ref), clusters); rejection != nil {
		return rejection
	}
	return nil
}

// clustersWithCredentials returns the names of the clusters whose credentials are stored in a
// Secret.
func (r *reconciler) clustersWithCredentials(ctx context.Context, secret types.NamespacedName) ([]string, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, list, clustersByCredentials.Matching(secret.String()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the clusters of Secret %s: %w", secret, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// withDeliveredHint adds a hint to the error of a rejected binding if the binding has Works. The
// hint says that these Works are not deleted.
func withDeliveredHint(err error, works []*workv1alpha1.Work) error {
	if rejection := new(tenancy.ForbiddenError); len(works) == 0 || !errors.As(err, &rejection) {
		return err
	}
	return fmt.Errorf("%w; what was delivered stays in the clusters: delete the binding to remove it", err)
}
