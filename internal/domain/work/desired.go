package work

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// RetainFunc copies the fields that the member owns from observed to desired. It may change or replace
// desired, but must not change observed.
type RetainFunc func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

// DesiredObject returns a member object's desired state: the manifest, with the fields that the member
// owns taken from the observed object.
//
// The manifest's labels and annotations take precedence. Those that only the member has are kept. Those
// that an earlier manifest set and the current one does not are removed. resourceVersion makes the
// write fail if the object has changed since it was observed. The status is kept, because for kinds
// without a status subresource a write would remove it. retain may be nil.
func DesiredObject(manifest, observed *unstructured.Unstructured, retain RetainFunc) (*unstructured.Unstructured, error) {
	desired := manifest.DeepCopy()
	desired.SetResourceVersion(observed.GetResourceVersion())
	desired.SetFinalizers(observed.GetFinalizers())
	desired.SetOwnerReferences(observed.GetOwnerReferences())
	observedAnnotations := observed.GetAnnotations()
	desired.SetLabels(mergeRetainedKeys(manifest.GetLabels(), observed.GetLabels(), observedAnnotations[workv1alpha2.ManagedLabels]))
	desired.SetAnnotations(mergeRetainedKeys(manifest.GetAnnotations(), observedAnnotations,
		observedAnnotations[workv1alpha2.ManagedAnnotations]))
	if status, found := observed.Object["status"]; found {
		desired.Object["status"] = (&unstructured.Unstructured{Object: map[string]any{"status": status}}).DeepCopy().Object["status"]
	}
	if retain == nil {
		return desired, nil
	}
	result, err := retain(desired, observed)
	if err != nil {
		return nil, fmt.Errorf("retaining what the member owns of %s: %w", describeObject(observed), err)
	}
	return result, nil
}

// mergeRetainedKeys returns the manifest's entries, and the member's entries that no earlier manifest
// set. managedKeys lists the keys that the earlier manifest set, joined by commas.
func mergeRetainedKeys(manifest, member map[string]string, managedKeys string) map[string]string {
	managed := sets.New(strings.Split(managedKeys, ",")...)
	memberOwned := map[string]string{}
	for key, value := range member {
		if !managed.Has(key) {
			memberOwned[key] = value
		}
	}
	return mergedMap(memberOwned, manifest)
}

// IsInSync reports whether writing the desired object would change nothing relevant in the observed
// object. Differences in the status and in fields that the API server sets are not relevant.
func IsInSync(desired, observed *unstructured.Unstructured) bool {
	return jsonedit.EqualFields(prunedCopy(desired).Object, prunedCopy(observed).Object)
}

// describeObject returns the object's kind and name for a message.
func describeObject(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), objectPath(object))
}

// objectPath returns namespace/name, or only the name of a cluster-scoped object.
func objectPath(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
