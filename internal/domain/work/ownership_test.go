package work

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func labelledObject(name, id, work, space string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"namespace": "shop", "name": name,
			"labels":      map[string]any{"karmada.io/managed": "true", "work.karmada.io/permanent-id": id},
			"annotations": map[string]any{"work.karmada.io/namespace": space, "work.karmada.io/name": work, "resourcetemplate.karmada.io/uid": "uid-" + id},
		},
	}}
}

func TestOwnershipOfMemberObject(t *testing.T) {
	const space = "karmada-es-m1"
	carried, err := labelledObject("web", "one", "web-1", space).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	of := workv1alpha1.Work{}
	of.Namespace, of.Name = space, "web-1"
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: carried}}}
	claims, err := NewManifestIndex("m1", []workv1alpha1.Work{of})
	if err != nil {
		t.Fatal(err)
	}
	change := func(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		change(object)
		return object
	}
	tests := map[string]struct {
		object *unstructured.Unstructured
		want   Ownership
		work   string
	}{
		"created for the Work that holds it": {labelledObject("web", "one", "web-1", space), Owned, "web-1"},
		"another version of the kind": {change(labelledObject("web", "one", "web-1", space), func(o *unstructured.Unstructured) {
			o.SetAPIVersion("apps/v1beta1")
		}), Owned, "web-1"},
		"created for an earlier Work, and another one holds it": {labelledObject("web", "two", "web-0", space), Adoptable, "web-1"},
		"no Work holds it":       {labelledObject("api", "three", "api-1", space), Orphaned, ""},
		"a Work of another name": {labelledObject("api", "one", "web-1", space), Orphaned, ""},
		"another kind with the same name": {change(labelledObject("web", "one", "web-1", space), func(o *unstructured.Unstructured) {
			o.SetAPIVersion("example.org/v1")
		}), Orphaned, ""},
		"annotations of another control plane": {labelledObject("api", "three", "api-1", "karmada-es-other"), OwnedElsewhere, ""},
		"without the label":                    {change(labelledObject("api", "three", "api-1", space), func(o *unstructured.Unstructured) { o.SetLabels(nil) }), Unmanaged, ""},
		"only the label, as controllers copy it": {change(labelledObject("api", "three", "api-1", space), func(o *unstructured.Unstructured) {
			o.SetAnnotations(nil)
		}), Unmanaged, ""},
		"created by a controller in the member": {change(labelledObject("api", "three", "api-1", space), func(o *unstructured.Unstructured) {
			o.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Service", "name": "a", "uid": "u", "controller": true}}
		}), Unmanaged, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, claim := claims.OwnershipOf(test.object); got != test.want || claim.WorkName != test.work {
				t.Errorf("ownership %d of Work %q, want %d of %q", got, claim.WorkName, test.want, test.work)
			}
		})
	}
}

func TestManifestIndexRejectsInvalidManifest(t *testing.T) {
	of := workv1alpha1.Work{}
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":`)}}}
	if _, err := NewManifestIndex("m1", []workv1alpha1.Work{of}); err == nil {
		t.Error("an invalid manifest was accepted")
	}
}

func TestAdoptedObjectIsWritable(t *testing.T) {
	for _, id := range []string{"one", ""} {
		t.Run(fmt.Sprintf("id %q", id), func(t *testing.T) {
			manifest := labelledObject("web", id, "web-1", "karmada-es-m1")
			object := labelledObject("web", "two", "web-0", "karmada-es-m1")
			AdoptObject(object, WorkManifest{WorkName: "web-1", Manifest: manifest})
			if ok, _ := MayWrite(&workv1alpha1.Work{}, object, manifest); !ok {
				t.Errorf("the Work may not write %v", object)
			}
		})
	}
}
