// Package patch brings a stored object to its desired state with the smallest write: nothing if the
// states do not differ, otherwise one merge patch.
//
// A patch contains the resourceVersion from which it was computed, because a merge patch replaces
// whole lists. A writer that read an older list therefore gets a conflict and cannot undo the entry
// of another writer. Callers retry a conflict with a fresh read.
//
// In a merge patch, null removes a field. An object with a null inside a list, such as a Work with
// such a manifest, is therefore written by an update. A patch would lose the null, and every pass
// would find the same difference again.
package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object writes the difference between before and after, except the status, and reports whether
// there was a difference. It stores the response of the API server in after. If only labels,
// annotations, finalizers or owner references differ, as in most writes, Object encodes only these
// fields, and the API server returns only metadata, because after contains the rest.
func Object(ctx context.Context, karmada client.Client, before, after client.Object) (changed bool, err error) {
	metadata := metadataChanges(before, after)
	if hasEqualContent(before, after) {
		return applyMetadata(ctx, karmada, before, after, metadata)
	}
	data, err := difference(before, after)
	if err != nil {
		return false, fmt.Errorf("computing the patch of %s: %w", describeObject(after), err)
	}
	if hasNullInList(data) {
		if err := karmada.Update(ctx, after); err != nil {
			return false, fmt.Errorf("updating %s: %w", describeObject(after), err)
		}
		return true, nil
	}
	if err := karmada.Patch(ctx, after, client.RawPatch(types.MergePatchType, data)); err != nil {
		return false, fmt.Errorf("patching %s: %w", describeObject(after), err)
	}
	return true, nil
}

// difference returns the merge patch from before to after, without the status, under the condition that
// the stored object has the resourceVersion of before.
func difference(before, after client.Object) ([]byte, error) {
	if before.GetResourceVersion() == "" {
		return nil, errNoVersion
	}
	older, newer := differingFields(before, after)
	olderText, err := json.Marshal(older)
	if err != nil {
		return nil, err
	}
	newerText, err := json.Marshal(newer)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(olderText, newerText)
}

// hasNullInList reports whether a patch contains a null inside a list.
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

// Status writes the status of after if it differs from the status of before, and reports whether it
// differed. It stores the response of the API server in after. It uses an update instead of a
// patch, so that the API server need not compute the result. The update contains the
// resourceVersion of after, so it can return a conflict.
func Status(ctx context.Context, karmada client.StatusClient, before, after client.Object) (changed bool, err error) {
	if hasEqualStatus(before, after) {
		return false, nil
	}
	if err := karmada.Status().Update(ctx, after); err != nil {
		return false, fmt.Errorf("updating status of %s: %w", describeObject(after), err)
	}
	return true, nil
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
