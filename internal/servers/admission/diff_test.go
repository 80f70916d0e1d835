package admission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Applying the difference to the first state returns the second state and keeps unknown fields.
func TestApplyMapDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawMap(t, 3), drawMap(t, 3)
		content := clone(t, from)
		content["unknown"] = "kept"
		applyMapDiff(content, from, clone(t, to))
		want := clone(t, to)
		want["unknown"] = "kept"
		if diff := cmp.Diff(want, content); diff != "" {
			t.Fatalf("content differs (-want +got):\n%s", diff)
		}
	})
}

func drawMap(t *rapid.T, depth int) map[string]any {
	result := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "keys") {
		result[key] = drawValue(t, depth-1)
	}
	return result
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 3
	if depth <= 0 {
		kinds = 1
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 2:
		return drawMap(t, depth)
	case 3:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		return rapid.SampledFrom([]any{"x", "y", true}).Draw(t, "value")
	}
}

func clone(t *rapid.T, object map[string]any) map[string]any {
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]any{}
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func BenchmarkApplyDiffWithoutChange(b *testing.B) {
	before := &workv1alpha1.Work{}
	text := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"key":"` + strings.Repeat("x", 1000) + `"}}`
	before.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}}
	after := before.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if err := applyDiff(nil, before, after); err != nil {
			b.Fatal(err)
		}
	}
}
