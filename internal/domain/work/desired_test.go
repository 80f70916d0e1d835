package work

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func TestDesiredObject(t *testing.T) {
	manifest := parseObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {kept: mine, changed: mine}
  annotations: {a: mine, resourcetemplate.karmada.io/managed-labels: "changed,kept"}
  finalizers: [not/mine]
spec: {replicas: 2}`)
	observed := parseObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: member-uid
  resourceVersion: "77"
  finalizers: [member/one]
  ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: u}]
  labels: {kept: mine, changed: theirs, gone: mine, member: theirs}
  annotations:
    gone: mine
    member: theirs
    resourcetemplate.karmada.io/managed-labels: "changed,gone,kept"
    resourcetemplate.karmada.io/managed-annotations: "a,gone"
spec: {replicas: 9, paused: true}
status: {replicas: 9}`)
	want := parseObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  resourceVersion: "77"
  finalizers: [member/one]
  ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: u}]
  labels: {kept: mine, changed: mine, member: theirs}
  annotations:
    a: mine
    member: theirs
    resourcetemplate.karmada.io/managed-labels: "changed,kept"
    resourcetemplate.karmada.io/managed-annotations: "a,gone"
spec: {replicas: 2}
status: {replicas: 9}`)
	manifestBefore, observedBefore := manifest.DeepCopy(), observed.DeepCopy()
	got, err := DesiredObject(manifest, observed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
	overwriteAll(got.Object)
	if diff := cmp.Diff(manifestBefore, manifest) + cmp.Diff(observedBefore, observed); diff != "" {
		t.Errorf("inputs were changed or shared: %s", diff)
	}
}

func overwriteAll(node any) {
	switch parent := node.(type) {
	case map[string]any:
		for key := range parent {
			overwriteAll(parent[key])
			parent[key] = "overwritten"
		}
	case []any:
		for i := range parent {
			overwriteAll(parent[i])
			parent[i] = "overwritten"
		}
	}
}

func TestDesiredObjectRetain(t *testing.T) {
	manifest, observed := parseObject(t, deployment), parseObject(t, deployment)
	if err := unstructured.SetNestedField(observed.Object, int64(9), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	retain := func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		replicas, _, err := unstructured.NestedInt64(observed.Object, "spec", "replicas")
		if err != nil {
			return nil, err
		}
		return desired, unstructured.SetNestedField(desired.Object, replicas, "spec", "replicas")
	}
	got, err := DesiredObject(manifest, observed, retain)
	if err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); replicas != 9 {
		t.Errorf("%d replicas, want those of the member", replicas)
	}
	cause := errors.New("script failed")
	_, err = DesiredObject(manifest, observed, func(_, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) { return nil, cause })
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "Deployment shop/web") {
		t.Errorf("got %v, want the cause and the object", err)
	}
}

func TestIsInSync(t *testing.T) {
	tests := map[string]struct {
		change func(observed *unstructured.Unstructured)
		want   bool
	}{
		"the same":                 {func(*unstructured.Unstructured) {}, true},
		"status does not count":    {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"x": "y"} }, true},
		"a member's key is kept":   {func(o *unstructured.Unstructured) { o.SetLabels(mergedMap(o.GetLabels(), map[string]string{"m": "m"})) }, true},
		"a member's finalizer too": {func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"m/m"}) }, true},
		"a changed key is reset":   {func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": "x"}) }, false},
		"a changed spec is reset":  {func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(1) }, false},
		"a defaulted field counts": {func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["paused"] = false }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest, observed := parseObject(t, deployment), parseObject(t, deployment)
			tc.change(observed)
			desired, err := DesiredObject(manifest, observed, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := IsInSync(desired, observed); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestDesiredObjectIsStable checks that an object that is in its desired state is not written again.
func TestDesiredObjectIsStable(t *testing.T) {
	keys := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		draw := func(side string) *unstructured.Unstructured {
			drawn := drawnObject().Draw(t, side)
			drawn.Object["metadata"] = map[string]any{"name": "x"}
			labels, annotations := map[string]string{}, map[string]string{}
			for _, key := range keys.Draw(t, side+" labels") {
				labels[key] = side
			}
			for _, key := range keys.Draw(t, side+" annotations") {
				annotations[key] = side
			}
			drawn.SetLabels(labels)
			drawn.SetAnnotations(annotations)
			setMetadata(drawn, drawn.GetLabels(), drawn.GetAnnotations())
			return drawn
		}
		manifest, observed := draw("manifest"), draw("observed")
		Prune(manifest)
		once, err := DesiredObject(manifest, observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := DesiredObject(manifest, once, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("not stable: %s", diff)
		}
		if !IsInSync(twice, once) {
			t.Fatal("stable, but not in sync")
		}
	})
}

func BenchmarkIsInSync(b *testing.B) {
	manifest, observed := parseObject(b, deployment), parseObject(b, deployment)
	b.ReportAllocs()
	for b.Loop() {
		desired, err := DesiredObject(manifest, observed, nil)
		if err != nil || !IsInSync(desired, observed) {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrunedHash(b *testing.B) {
	observed := parseObject(b, deployment)
	b.ReportAllocs()
	for b.Loop() {
		PrunedHash(observed)
	}
}
