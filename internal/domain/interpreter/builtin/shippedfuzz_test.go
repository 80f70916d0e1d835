package builtin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// FuzzObjects asks all rules of one kind about an arbitrary object. The rules may answer or return an
// error. The seeds are the test objects of all kinds.
func FuzzObjects(f *testing.F) {
	kinds := shippedKinds(f, newClock())
	for i, kind := range kinds {
		for _, object := range append([]map[string]any{kind.fixture.Desired}, kind.fixture.memberObjects()...) {
			text, err := json.Marshal(object)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, text []byte) {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil || object.IsList() {
			return
		}
		askAll(t, kinds[int(index)%len(kinds)], object)
	})
}

// askAll calls each rule of a kind with an object, which is both the template and the member object.
func askAll(t *testing.T, kind shippedKind, object *unstructured.Unstructured) {
	rules, before := kind.rules, object.DeepCopy()
	if rules.Replicas != nil {
		_, _, _ = rules.Replicas(t.Context(), object)
	}
	if rules.Components != nil {
		_, _ = rules.Components(t.Context(), object)
	}
	if rules.ReviseReplicas != nil {
		_, _ = rules.ReviseReplicas(t.Context(), object, 3)
	}
	if rules.Retain != nil {
		_, _ = rules.Retain(t.Context(), object, object)
	}
	if rules.ReflectStatus != nil {
		_, _ = rules.ReflectStatus(t.Context(), object)
	}
	if rules.IsHealthy != nil {
		_, _ = rules.IsHealthy(t.Context(), object)
	}
	if rules.Dependencies != nil {
		_, _ = rules.Dependencies(t.Context(), object)
	}
	if rules.AggregateStatus != nil {
		raw, _ := json.Marshal(object.Object["status"])
		_, _ = rules.AggregateStatus(t.Context(), object, []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "a", Status: &runtime.RawExtension{Raw: raw}}, {ClusterName: "b", Status: &runtime.RawExtension{Raw: raw}}, {ClusterName: "c"},
		})
	}
	if !equality.Semantic.DeepEqual(before, object) {
		t.Errorf("a rule of %s changed its argument %v", kind.File, before.Object)
	}
}

// BenchmarkHealthOf20KiB asks for the health of a HelmRelease with a large spec and many conditions.
func BenchmarkHealthOf20KiB(b *testing.B) {
	for _, kind := range shippedKinds(b, newClock()) {
		if kind.File != "helm.toolkit.fluxcd.io_v2beta1_HelmRelease.yaml" {
			continue
		}
		object := &unstructured.Unstructured{Object: kind.fixture.memberObjects()[0]}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		values := map[string]any{}
		for i := range 300 {
			values[fmt.Sprintf("value%d", i)] = strings.Repeat("x", 50)
		}
		object.Object["spec"] = map[string]any{"values": values}
		object.Object["status"] = map[string]any{"conditions": append([]any{conditions[1], conditions[1]}, conditions[0])}
		b.ReportAllocs()
		for b.Loop() {
			if healthy, err := kind.rules.IsHealthy(b.Context(), object); !healthy || err != nil {
				b.Fatal(healthy, err)
			}
		}
	}
}
