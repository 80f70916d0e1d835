// Package patch answers "what is the least write that turns what is stored into
// what we want?": nothing when nothing differs, else one merge patch.
//
// A patch carries the resourceVersion it was computed from. Lists are replaced
// whole by a merge patch, so a writer that saw an older list must fail (with a
// conflict, which callers retry on a fresh read) and not undo another's entry.
package patch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object writes the difference between before and after, status left out, and
// reports whether there was any. after receives what the server stored.
func Object(ctx context.Context, karmada client.Writer, before, after client.Object) (changed bool, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	if err := karmada.Patch(ctx, after, from(before)); err != nil {
		return false, fmt.Errorf("patching %s: %w", name(after), err)
	}
	return true, nil
}

// Status writes the difference between the statuses of before and after, and
// reports whether there was any. after receives what the server stored.
func Status(ctx context.Context, karmada client.StatusClient, before, after client.Object) (changed bool, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	if err := karmada.Status().Patch(ctx, after, from(before)); err != nil {
		return false, fmt.Errorf("patching status of %s: %w", name(after), err)
	}
	return true, nil
}

// OwnStatus is Status without the resourceVersion, for a writer that is the only
// one of the fields it changes: it cannot undo anybody and need not be retried
// because somebody else wrote other fields meanwhile.
func OwnStatus(ctx context.Context, karmada client.StatusClient, before, after client.Object) (changed bool, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	if err := karmada.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return false, fmt.Errorf("patching status of %s: %w", name(after), err)
	}
	return true, nil
}

func from(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func name(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", object)
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, accessor.GetNamespace(), accessor.GetName())
	}
	return fmt.Sprintf("%s %s", kind, object.GetName())
}
