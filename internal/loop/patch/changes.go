package patch

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Changes is the content of a merge patch that the caller knows, so that no whole objects are
// compared. A nil value removes a field.
type Changes struct {
	Annotations map[string]any
	// Spec and Status contain fields by their names in JSON. A patch with a status changes nothing
	// else.
	Spec, Status map[string]any
}

// Apply writes the changes that make object the desired state, and reports whether there were any.
// Like Object, it requires the resourceVersion of the object. The API server returns only metadata,
// because the caller knows the rest. From there, Apply sets the resourceVersion and the generation
// of the object. It changes nothing else, so the object may share its maps and lists with a cache.
func Apply(ctx context.Context, karmada client.Client, object client.Object, changes Changes) (changed bool, err error) {
	if len(changes.Annotations)+len(changes.Spec)+len(changes.Status) == 0 {
		return false, nil
	}
	kind, err := karmada.GroupVersionKindFor(object)
	if err != nil {
		return false, fmt.Errorf("finding the kind of %s: %w", describeObject(object), err)
	}
	data, err := changes.encode(object.GetResourceVersion())
	if err != nil {
		return false, fmt.Errorf("encoding the patch of %s: %w", describeObject(object), err)
	}
	written := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	written.SetGroupVersionKind(kind)
	if len(changes.Status) > 0 {
		err = karmada.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, data))
	} else {
		err = karmada.Patch(ctx, written, client.RawPatch(types.MergePatchType, data))
	}
	if err != nil {
		return false, fmt.Errorf("patching %s: %w", describeObject(object), err)
	}
	object.SetResourceVersion(written.ResourceVersion)
	object.SetGeneration(written.Generation)
	return true, nil
}

func (c Changes) encode(resourceVersion string) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": resourceVersion}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = c.Annotations
	}
	content := map[string]any{"metadata": metadata}
	if len(c.Spec) > 0 {
		content["spec"] = c.Spec
	}
	if len(c.Status) > 0 {
		content["status"] = c.Status
	}
	return json.Marshal(content)
}
