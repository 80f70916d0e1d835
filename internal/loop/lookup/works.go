package lookup

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// WorksOf returns the Works of a binding. It skips Works whose annotations name another binding,
// because a copy of a binding has the same ID. It needs the index WorksByBindingID.
func WorksOf(ctx context.Context, from client.Reader, bound binding.Object) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	id := bindingIDKey(binding.PermanentIDLabel(bound), binding.PermanentID(bound))
	if err := from.List(ctx, list, WorksByBindingID.Matching(id), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %s: %w", client.ObjectKeyFromObject(bound), err)
	}
	found := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		if binding.BelongsTo(&list.Items[i], bound) {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}
