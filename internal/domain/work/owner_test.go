package work

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// labelledConfigMap returns a ConfigMap with a Work's labels and annotations. Empty labels and
// annotations are omitted.
func labelledConfigMap(managed, workID, templateUID, workName, resolution string) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	result.SetNamespace("shop")
	result.SetName("c")
	labels := map[string]string{"karmada.io/managed": managed, "work.karmada.io/permanent-id": workID}
	annotations := map[string]string{
		"resourcetemplate.karmada.io/uid": templateUID, "work.karmada.io/name": workName,
		"work.karmada.io/namespace": "karmada-es-m1", "work.karmada.io/conflict-resolution": resolution,
	}
	for _, entries := range []map[string]string{labels, annotations} {
		for key, value := range entries {
			if value == "" {
				delete(entries, key)
			}
		}
	}
	result.SetLabels(labels)
	result.SetAnnotations(annotations)
	return result
}

func TestMayWriteAndDelete(t *testing.T) {
	manifest := labelledConfigMap("true", "id-1", "uid-1", "w-1", "abort")
	overwriting := labelledConfigMap("true", "id-1", "uid-1", "w-1", "overwrite")
	manual := labelledConfigMap("true", "id-1", "", "w-1", "")
	const other = "Work karmada-es-m1/w-2 (permanent id id-2)"
	impersonator := func(id, controlPlane string) *unstructured.Unstructured {
		object := labelledConfigMap("true", id, "", "w-"+id, "")
		object.SetNamespace("")
		object.SetName("karmada-impersonator")
		addLabels(object, map[string]string{"karmada.io/system": "true"})
		addAnnotations(object, map[string]string{"cluster.karmada.io/control-plane": controlPlane})
		return object
	}
	tests := map[string]struct {
		observed, manifest *unstructured.Unstructured
		write, delete      bool
		owner              string
	}{
		"an object of the same Work":                           {labelledConfigMap("true", "id-1", "uid-1", "w-1", ""), manifest, true, true, ""},
		"an object without a permanent id":                     {labelledConfigMap("true", "", "", "", ""), manifest, true, true, ""},
		"an unmanaged object":                                  {labelledConfigMap("", "", "", "", ""), manifest, false, false, ""},
		"an object with the managed label set to false":        {labelledConfigMap("false", "id-1", "uid-1", "w-1", ""), manifest, false, false, ""},
		"an unmanaged object, overwriting":                     {labelledConfigMap("", "", "", "", ""), overwriting, true, false, ""},
		"an object of another Work":                            {labelledConfigMap("true", "id-2", "uid-2", "w-2", ""), manifest, false, false, other},
		"an object of another Work, overwriting":               {labelledConfigMap("true", "id-2", "uid-2", "w-2", ""), overwriting, true, false, ""},
		"another control plane's Work of the same name":        {labelledConfigMap("true", "id-2", "uid-2", "w-1", ""), manifest, false, false, "Work karmada-es-m1/w-1 (permanent id id-2)"},
		"left behind by a Work of the same template":           {labelledConfigMap("true", "id-0", "uid-1", "w-1", ""), manifest, true, true, ""},
		"left behind by a Work without a template":             {labelledConfigMap("true", "id-0", "", "w-1", ""), manual, true, true, ""},
		"a Work without template and with another name":        {labelledConfigMap("true", "id-2", "", "w-2", ""), manual, false, false, other},
		"created by a user's Work without labels":              {labelledConfigMap("", "id-1", "", "", ""), labelledConfigMap("", "id-1", "", "", ""), true, false, ""},
		"an unmanaged object, in a user's Work without labels": {labelledConfigMap("", "", "", "", ""), labelledConfigMap("", "id-1", "", "", ""), false, false, ""},
		"created by another user's Work without labels":        {labelledConfigMap("", "id-2", "", "", ""), labelledConfigMap("", "id-1", "", "", ""), false, false, ""},
		"an impersonator of the same control plane":            {impersonator("2", "this"), impersonator("1", "this"), true, false, ""},
		"an impersonator of another control plane":             {impersonator("2", "other"), impersonator("1", "this"), false, false, "Work karmada-es-m1/w-2 (permanent id 2)"},
		"an object of a template, in a Work without one":       {labelledConfigMap("true", "id-2", "uid-2", "w-2", ""), manual, false, false, other},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ok, owner := MayWrite(&workv1alpha1.Work{}, tc.observed, tc.manifest)
			if ok != tc.write || owner != tc.owner {
				t.Errorf("may write: %v, owner %q, want %v, %q", ok, owner, tc.write, tc.owner)
			}
			if got := MayDelete(tc.observed, tc.manifest); got != tc.delete {
				t.Errorf("may delete: %v", got)
			}
		})
	}
}

func TestConflictError(t *testing.T) {
	observed := labelledConfigMap("true", "id-2", "uid-2", "w-2", "")
	const known = "resource(kind=ConfigMap, shop/c) already exists in the cluster m1 and the work.karmada.io/conflict-resolution " +
		"strategy value is empty, Karmada will not manage this resource"
	const remedy = "or take it over with conflictResolution: Overwrite in the policy, or with the annotation work.karmada.io/conflict-resolution: overwrite on the template"
	for owner, want := range map[string]string{"Work a/b": "belongs to Work a/b", "": "no Work manages it"} {
		text := NewConflict("m1", observed, owner).Error()
		if !strings.HasPrefix(text, known) {
			t.Errorf("%q does not begin with the known text", text)
		}
		if !strings.Contains(text, want) || !strings.Contains(text, remedy) {
			t.Errorf("%q lacks owner or remedy", text)
		}
	}
}

func TestRelease(t *testing.T) {
	marked := renderedWork(t, nil)
	object := decodedManifest(t, marked)
	addLabels(object, map[string]string{
		"clusterpropagationpolicy.karmada.io/permanent-id": "x", "clusterresourcebinding.karmada.io/permanent-id": "x",
		"resourcetemplate.karmada.io/retain-replicas": "true",
	})
	addAnnotations(object, map[string]string{
		"clusterpropagationpolicy.karmada.io/name": "x", "clusterresourcebinding.karmada.io/name": "x",
		"propagationpolicy.karmada.io/name": "x", "propagationpolicy.karmada.io/namespace": "x",
	})
	if !Release(object) {
		t.Fatal("no label was removed")
	}
	wantLabels := map[string]string{"app": "web", "resourcetemplate.karmada.io/retain-replicas": "true"}
	if diff := cmp.Diff(wantLabels, object.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "hi"}, object.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if Release(object) {
		t.Error("a released object is released again")
	}
}
