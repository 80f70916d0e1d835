// Package patch answers "what is the least write that turns what is stored into
// what we want?": nothing when nothing differs, else one merge patch.
//
// A patch carries the resourceVersion it was computed from. Lists are replaced
// whole by a merge patch, so a writer that saw an older list must fail (with a
// conflict, which callers retry on a fresh read) and not undo another's entry.
//
// A merge patch cannot say that a field is null, only that it goes. So an object
// that holds a null inside of a list, like a Work whose manifest does, is written
// whole: otherwise the null would be lost, and missed again in every pass.
package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object writes the difference between before and after, status left out, and
// reports whether there was any. after receives what the server stored.
func Object(ctx context.Context, karmada client.Writer, before, after client.Object) (changed bool, err error) {
	if Same(before, after) {
		return false, nil
	}
	difference := from(before)
	data, err := difference.Data(after)
	if err != nil {
		return false, fmt.Errorf("computing the patch of %s: %w", name(after), err)
	}
	if listedNull(data) {
		if err := karmada.Update(ctx, after); err != nil {
			return false, fmt.Errorf("updating %s: %w", name(after), err)
		}
		return true, nil
	}
	if err := karmada.Patch(ctx, after, client.RawPatch(difference.Type(), data)); err != nil {
		return false, fmt.Errorf("patching %s: %w", name(after), err)
	}
	return true, nil
}

// listedNull tells whether a patch holds a field that is null inside of a list.
func listedNull(patch []byte) bool {
	if !bytes.Contains(patch, []byte("null")) {
		return false
	}
	var content any
	return json.Unmarshal(patch, &content) == nil && hasNull(content, false)
}

func hasNull(value any, listed bool) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			if field == nil && listed || hasNull(field, listed) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(typed, func(element any) bool { return hasNull(element, true) })
	}
	return false
}

// Status writes the status of after if it differs from that of before, and
// reports whether it did. after receives what the server stored. It is an update
// and not a patch because the server then need not work out what it would change;
// it carries the resourceVersion of after, so a conflict is possible.
func Status(ctx context.Context, karmada client.StatusClient, before, after client.Object) (changed bool, err error) {
	if Same(before, after) {
		return false, nil
	}
	if err := karmada.Status().Update(ctx, after); err != nil {
		return false, fmt.Errorf("updating status of %s: %w", name(after), err)
	}
	return true, nil
}

func from(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func name(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(object)).Type().Name()
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, accessor.GetNamespace(), accessor.GetName())
	}
	return fmt.Sprintf("%s %s", kind, object.GetName())
}
