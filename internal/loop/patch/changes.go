package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	content := map[string]any{}
	addUnlessEmpty(content, "spec", changes.Spec)
	addUnlessEmpty(content, "status", changes.Status)
	metadata := map[string]any{}
	addUnlessEmpty(metadata, "annotations", changes.Annotations)
	if len(content)+len(metadata) == 0 {
		return false, nil
	}
	content["metadata"] = metadata
	written, err := mergePatch(ctx, karmada, object, content)
	if err != nil {
		return false, err
	}
	object.SetResourceVersion(written.ResourceVersion)
	object.SetGeneration(written.Generation)
	return true, nil
}

// applyMetadata writes changes of the metadata of before, and stores the metadata in the response in
// after.
func applyMetadata(ctx context.Context, karmada client.Client, before, after client.Object,
	changes map[string]any) (changed bool, err error) {
	if len(changes) == 0 {
		return false, nil
	}
	written, err := mergePatch(ctx, karmada, before, map[string]any{"metadata": changes})
	if err != nil {
		return false, err
	}
	after.SetResourceVersion(written.ResourceVersion)
	after.SetGeneration(written.Generation)
	after.SetLabels(written.Labels)
	after.SetAnnotations(written.Annotations)
	after.SetFinalizers(written.Finalizers)
	after.SetOwnerReferences(written.OwnerReferences)
	return true, nil
}

// mergePatch writes content, which has a map metadata, under the condition that object still has its
// resourceVersion. It patches only the status if content has a status. It returns the metadata of
// the written object.
func mergePatch(ctx context.Context, karmada client.Client, object client.Object,
	content map[string]any) (*metav1.PartialObjectMetadata, error) {
	kind, err := karmada.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %s: %w", describeObject(object), err)
	}
	if object.GetResourceVersion() == "" {
		return nil, fmt.Errorf("patching %s: %w", describeObject(object), errNoVersion)
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata["resourceVersion"] = object.GetResourceVersion()
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s: %w", describeObject(object), err)
	}
	written := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	written.SetGroupVersionKind(kind)
	if content["status"] != nil {
		err = karmada.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, data))
	} else {
		err = karmada.Patch(ctx, written, client.RawPatch(types.MergePatchType, data))
	}
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", describeObject(object), err)
	}
	return written, nil
}

// errNoVersion reports that an object was not read from an API server. Its patch would have no
// precondition, and could overwrite any state.
var errNoVersion = errors.New("the object has no resourceVersion; read it before it is patched")

func addUnlessEmpty(content map[string]any, field string, value map[string]any) {
	if len(value) > 0 {
		content[field] = value
	}
}

// metadataChanges returns the merge patch between the metadata of two objects. It contains only
// fields that clients set.
func metadataChanges(before, after client.Object) map[string]any {
	changes := map[string]any{}
	addUnlessEmpty(changes, "labels", mapChanges(before.GetLabels(), after.GetLabels()))
	addUnlessEmpty(changes, "annotations", mapChanges(before.GetAnnotations(), after.GetAnnotations()))
	if finalizers := after.GetFinalizers(); !slices.Equal(before.GetFinalizers(), finalizers) {
		changes["finalizers"] = finalizers
	}
	if owners := after.GetOwnerReferences(); !Equal(before.GetOwnerReferences(), owners) {
		changes["ownerReferences"] = owners
	}
	return changes
}

// mapChanges returns the merge patch between two maps.
func mapChanges(before, after map[string]string) map[string]any {
	if maps.Equal(before, after) {
		return nil
	}
	changes := map[string]any{}
	for key, value := range after {
		if older, found := before[key]; !found || older != value {
			changes[key] = value
		}
	}
	for key := range before {
		if _, found := after[key]; !found {
			changes[key] = nil
		}
	}
	return changes
}
