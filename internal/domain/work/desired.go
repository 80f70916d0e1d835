package work

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Retain carries values that a member owns from observed over to desired, which it
// may change or replace. Observed is read only.
type Retain func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

// Desired is what a member object should become: the manifest, with what belongs
// to the member taken from the observed object.
//
// Of labels and annotations the manifest's win, those that only the member has
// stay, and those that an earlier manifest brought and this one does not go.
// resourceVersion makes the write fail if the object has changed since it was
// observed. The status is the member's; for kinds that keep it outside a
// subresource a write would lose it otherwise. Retain may be nil.
func Desired(manifest, observed *unstructured.Unstructured, retain Retain) (*unstructured.Unstructured, error) {
	desired := manifest.DeepCopy()
	desired.SetResourceVersion(observed.GetResourceVersion())
	desired.SetFinalizers(observed.GetFinalizers())
	desired.SetOwnerReferences(observed.GetOwnerReferences())
	listed := observed.GetAnnotations()
	desired.SetLabels(retained(manifest.GetLabels(), observed.GetLabels(), listed[workv1alpha2.ManagedLabels]))
	desired.SetAnnotations(retained(manifest.GetAnnotations(), listed, listed[workv1alpha2.ManagedAnnotations]))
	if status, found := observed.Object["status"]; found {
		desired.Object["status"] = (&unstructured.Unstructured{Object: map[string]any{"status": status}}).DeepCopy().Object["status"]
	}
	if retain == nil {
		return desired, nil
	}
	kept, err := retain(desired, observed)
	if err != nil {
		return nil, fmt.Errorf("retaining what the member owns of %s: %w", reference(observed), err)
	}
	return kept, nil
}

// retained are the manifest's keys and those of the member that no earlier
// manifest brought, which listed tells.
func retained(manifest, member map[string]string, listed string) map[string]string {
	ours := sets.New(strings.Split(listed, ",")...)
	theirs := map[string]string{}
	for key, value := range member {
		if !ours.Has(key) {
			theirs[key] = value
		}
	}
	return merged(theirs, manifest)
}

// Same tells whether writing the desired object would change nothing that we care
// about in the observed one. Status and bookkeeping do not count.
func Same(desired, observed *unstructured.Unstructured) bool {
	return reflect.DeepEqual(pruned(desired).Object, pruned(observed).Object)
}

// reference names an object in messages.
func reference(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), path(object))
}

// path is namespace/name, or the name alone.
func path(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
