// Package patch answers: what is the smallest write that brings a stored object to its desired
// state? There is none if nothing differs, else one merge patch.
//
// A patch contains the resourceVersion from which it was computed. A merge patch replaces
// whole lists. So a writer that read an older list must get a conflict, which callers retry
// with a fresh read, and must not undo the entry of another writer.
//
// In a merge patch null means that a field is removed. So an object with a null inside a list,
// such as a Work with such a manifest, is written by an update: otherwise the null would be
// lost and missing again in every pass.
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

// Object writes the difference between before and after without the status, and reports
// whether there was any. after receives the stored object.
func Object(ctx context.Context, karmada client.Writer, before, after client.Object) (changed bool, err error) {
	if Equal(before, after) {
		return false, nil
	}
	difference := newMergePatch(before)
	data, err := difference.Data(after)
	if err != nil {
		return false, fmt.Errorf("computing the patch of %s: %w", describeObject(after), err)
	}
	if hasNullInList(data) {
		if err := karmada.Update(ctx, after); err != nil {
			return false, fmt.Errorf("updating %s: %w", describeObject(after), err)
		}
		return true, nil
	}
	if err := karmada.Patch(ctx, after, client.RawPatch(difference.Type(), data)); err != nil {
		return false, fmt.Errorf("patching %s: %w", describeObject(after), err)
	}
	return true, nil
}

// hasNullInList reports whether a patch contains a field that is null inside a list.
func hasNullInList(patch []byte) bool {
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

// Status writes the status of after if it differs from that of before, and reports whether it
// did. after receives the stored object. It uses an update instead of a patch, because the
// server then need not compute the result. The update contains the resourceVersion of after,
// so a conflict is possible.
func Status(ctx context.Context, karmada client.StatusClient, before, after client.Object) (changed bool, err error) {
	if Equal(before, after) {
		return false, nil
	}
	if err := karmada.Status().Update(ctx, after); err != nil {
		return false, fmt.Errorf("updating status of %s: %w", describeObject(after), err)
	}
	return true, nil
}

func newMergePatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func describeObject(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(object)).Type().Name()
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, accessor.GetNamespace(), accessor.GetName())
	}
	return fmt.Sprintf("%s %s", kind, object.GetName())
}
