package work

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestRescale(t *testing.T) {
	revise := func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		return object, unstructured.SetNestedField(object.Object, replicas, "spec", "replicas")
	}
	fails := func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
		return nil, errors.ErrUnsupported
	}
	manifest := func(replicas int64) workv1alpha1.Manifest {
		object := labelledObject("web", "one", "web-1", "karmada-es-m1")
		object.Object["spec"] = map[string]any{"replicas": replicas, "paused": true}
		encoded, err := EncodeManifest(object)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	tests := map[string]struct {
		annotations map[string]string
		workload    bool
		revise      func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error)
		replicas    int32
		want        int64
		fails       bool
	}{
		"other replicas":                {workload: true, revise: revise, replicas: 5, want: 5},
		"the same replicas":             {workload: true, revise: revise, replicas: 2, want: 2},
		"a kind without a rule":         {workload: true, replicas: 5, want: 2},
		"an object that is no workload": {revise: revise, replicas: 5, want: 2},
		"overrides of other fields": {
			annotations: map[string]string{policyv1alpha1.AppliedOverrides: `[{"overriders":{"labelsOverrider":[{"operator":"add"}]}}]`},
			workload:    true, revise: revise, replicas: 5, want: 5,
		},
		"an override of the replicas": {
			annotations: map[string]string{policyv1alpha1.AppliedOverrides: `[{"overriders":{"plaintext":[{"path":"/spec/replicas"}]}}]`},
			workload:    true, revise: revise, replicas: 5, want: 2,
		},
		"a rule that fails": {workload: true, revise: fails, replicas: 5, fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stored := &workv1alpha1.Work{}
			stored.Annotations, stored.Spec.Workload.Manifests = tc.annotations, []workv1alpha1.Manifest{manifest(2)}
			bound := &workv1alpha2.ResourceBinding{}
			if tc.workload {
				bound.Spec.Replicas = 2
			}
			got, changed, err := Rescale(stored, bound, workv1alpha2.TargetCluster{Name: "m1", Replicas: tc.replicas}, tc.revise)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if tc.fails {
				return
			}
			if changed != (tc.want != 2) || !equalManifests(got.Spec.Workload.Manifests[0], manifest(tc.want)) {
				t.Errorf("changed: %v, manifest %s", changed, got.Spec.Workload.Manifests[0].Raw)
			}
			if !equalManifests(stored.Spec.Workload.Manifests[0], manifest(2)) {
				t.Error("the stored Work was changed")
			}
		})
	}
}

func TestRecordedTemplate(t *testing.T) {
	newWork := func(spec map[string]any, annotations map[string]string) *workv1alpha1.Work {
		object := labelledObject("web", "one", "web-1", "karmada-es-m1")
		object.Object["spec"] = spec
		encoded, err := EncodeManifest(object)
		if err != nil {
			t.Fatal(err)
		}
		created := &workv1alpha1.Work{}
		created.Annotations, created.Spec.Workload.Manifests = annotations, []workv1alpha1.Manifest{encoded}
		return created
	}
	recorded := newWork(map[string]any{"replicas": int64(2)}, nil)
	overridden := newWork(map[string]any{"replicas": int64(9)}, map[string]string{policyv1alpha1.AppliedClusterOverrides: "[{}]"})
	divided := newWork(map[string]any{"replicas": int64(9), "completions": int64(3)}, nil)
	tests := map[string]struct {
		works []*workv1alpha1.Work
		want  int64
	}{
		"the Work of another cluster":          {[]*workv1alpha1.Work{overridden, divided, recorded}, 2},
		"every Work differs from the template": {[]*workv1alpha1.Work{overridden, divided}, 0},
		"no Work":                              {nil, 0},
		"a Work without manifests":             {[]*workv1alpha1.Work{{}}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := labelledObject("web", "one", "web-1", "")
			template.SetUID("uid-web")
			template.SetResourceVersion("7")
			got := RecordedTemplate(template, tc.works)
			if (got == nil) != (tc.want == 0) {
				t.Fatalf("template %v", got)
			}
			if got == nil {
				return
			}
			replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas")
			if replicas != tc.want || got.GetUID() != "uid-web" || got.GetResourceVersion() != "7" {
				t.Errorf("%d replicas, UID %s, version %s", replicas, got.GetUID(), got.GetResourceVersion())
			}
		})
	}
}
