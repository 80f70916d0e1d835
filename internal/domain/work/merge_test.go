package work

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
)

func renderedWork(t testing.TB, change func(*RenderInput)) *workv1alpha1.Work {
	t.Helper()
	in := inputForFirstTarget(parseObject(t, deployment), resourceBinding(2, 3))
	if change != nil {
		change(&in)
	}
	result, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestMergeWithoutDifference(t *testing.T) {
	tests := map[string]func(stored *workv1alpha1.Work){
		"the same":                        func(*workv1alpha1.Work) {},
		"a label of another writer":       func(stored *workv1alpha1.Work) { stored.Labels["foreign"] = "x" },
		"an annotation of another writer": func(stored *workv1alpha1.Work) { stored.Annotations["foreign"] = "x" },
		"an additional finalizer":         func(stored *workv1alpha1.Work) { stored.Finalizers = append(stored.Finalizers, "z/z") },
		"an owner of another writer": func(stored *workv1alpha1.Work) {
			stored.OwnerReferences = []metav1.OwnerReference{{UID: "u", Name: "o"}}
		},
		"a manifest laid out differently": func(stored *workv1alpha1.Work) {
			var indented bytes.Buffer
			if err := json.Indent(&indented, stored.Spec.Workload.Manifests[0].Raw, "", "  "); err != nil {
				t.Fatal(err)
			}
			stored.Spec.Workload.Manifests[0].Raw = indented.Bytes()
		},
		"a status": func(stored *workv1alpha1.Work) {
			stored.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			stored := renderedWork(t, nil)
			change(stored)
			before := stored.DeepCopy()
			got, changed, err := Merge(stored, renderedWork(t, nil))
			if err != nil {
				t.Fatal(err)
			}
			if changed {
				t.Error("changed without a difference")
			}
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("result (-stored +got):\n%s", diff)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	stored := renderedWork(t, func(in *RenderInput) {
		in.Overrides.Cluster = []override.Object{newClusterOverride(t, "p", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]`)}
	})
	stored.ResourceVersion = "9"
	stored.Labels["foreign"] = "x"
	stored.Annotations["foreign"] = "x"
	stored.Finalizers = []string{"z/z", "a/a"}
	before := stored.DeepCopy()
	desired := renderedWork(t, func(in *RenderInput) {
		in.PermanentID = "new-id"
		in.Target.Replicas = 4
		in.Binding.BindingSpec().PreserveResourcesOnDeletion = new(true)
	})
	desired.OwnerReferences = []metav1.OwnerReference{{UID: "u"}}

	got, changed, err := Merge(stored, desired)
	if err != nil {
		t.Fatal(err)
	}
	if !changed {
		t.Fatal("no change")
	}
	if diff := cmp.Diff([]string{"a/a", "karmada.io/execution-controller", "z/z"}, got.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if got.Labels["foreign"] != "x" || got.Annotations["foreign"] != "x" || got.ResourceVersion != "9" {
		t.Error("metadata of other writers is gone")
	}
	if _, found := got.Annotations["policy.karmada.io/applied-cluster-overrides"]; found {
		t.Error("the annotation of overrides that no longer apply still exists")
	}
	manifest := decodedManifest(t, got)
	if got.Labels["work.karmada.io/permanent-id"] != "work-id" || manifest.GetLabels()["work.karmada.io/permanent-id"] != "work-id" {
		t.Error("the permanent id of the stored Work was replaced")
	}
	if !*got.Spec.PreserveResourcesOnDeletion || len(got.OwnerReferences) != 1 {
		t.Error("spec or owners were not brought to the desired state")
	}
	if diff := cmp.Diff(before, stored); diff != "" {
		t.Errorf("the stored Work was changed: %s", diff)
	}
	again, changed, err := Merge(got, desired)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" || changed {
		t.Errorf("merging again changes something: %v %s", changed, diff)
	}
}

func TestHasBinding(t *testing.T) {
	if !HasBinding(renderedWork(t, nil)) {
		t.Error("the Work of a binding has no binding")
	}
	if HasBinding(&workv1alpha1.Work{}) {
		t.Error("a Work without a binding has one")
	}
}

func TestPrepareForStorage(t *testing.T) {
	never := func() string { t.Error("a second id was created"); return "" }

	complete := renderedWork(t, nil)
	before := complete.DeepCopy()
	if err := PrepareForStorage(complete, never); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, complete); diff != "" {
		t.Errorf("a rendered Work was not complete: %s", diff)
	}

	manual := &workv1alpha1.Work{}
	manual.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u","labels":{"a":"b"}},"status":{}}`),
	}}}
	if err := PrepareForStorage(manual, func() string { return "fresh" }); err != nil {
		t.Fatal(err)
	}
	want := parseObject(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  labels: {a: b, work.karmada.io/permanent-id: fresh}
  annotations:
    resourcetemplate.karmada.io/managed-annotations: resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels
    resourcetemplate.karmada.io/managed-labels: a,work.karmada.io/permanent-id`)
	if diff := cmp.Diff(want, decodedManifest(t, manual)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if manual.Labels["work.karmada.io/permanent-id"] != "fresh" {
		t.Error("the Work has no id")
	}
	once := manual.DeepCopy()
	if err := PrepareForStorage(manual, never); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, manual); diff != "" {
		t.Errorf("completing twice changes something: %s", diff)
	}

	broken := &workv1alpha1.Work{}
	broken.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{`)}}}
	if err := PrepareForStorage(broken, func() string { return "x" }); err == nil {
		t.Error("a manifest that is not JSON was accepted")
	}
}

func BenchmarkMergeUnchanged(b *testing.B) {
	stored, err := Render(inputForFirstTarget(parseObject(b, deployment), resourceBinding(2, 3)))
	if err != nil {
		b.Fatal(err)
	}
	desired := stored.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, err := Merge(stored, desired); changed || err != nil {
			b.Fatal(changed, err)
		}
	}
}
