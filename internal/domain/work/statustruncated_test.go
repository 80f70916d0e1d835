package work

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestTruncateStatus(t *testing.T) {
	large := strings.Repeat("x", MaxStatusBytes)
	many := map[string]any{"replicas": 3}
	for i := range 5000 {
		many[fmt.Sprintf("field-%04d", i)] = "x"
	}
	for name, tc := range map[string]struct {
		status any
		kept   string
		left   []string
	}{
		"a small status is not cut":                  {map[string]any{"replicas": 3, "conditions": []any{}}, `{"conditions":[],"replicas":3}`, nil},
		"the largest field is omitted":               {map[string]any{"replicas": 3, "phase": "Ready", "log": large}, `{"phase":"Ready","replicas":3}`, []string{"log"}},
		"a deeply nested field is omitted":           {json.RawMessage(`{"replicas":3,"deep":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`), `{"replicas":3}`, []string{"deep"}},
		"a status that is not an object is omitted":  {large, "", nil},
		"braces in a string do not count as nesting": {map[string]any{"text": strings.Repeat(`{[\"`, 100)}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.status)
			if err != nil {
				t.Fatal(err)
			}
			kept, cut := TruncateStatus(&runtime.RawExtension{Raw: raw}, 0)
			if tc.kept == "" && name == "braces in a string do not count as nesting" {
				tc.kept = string(raw)
			}
			got := ""
			if kept != nil {
				got = string(kept.Raw)
			}
			var left []string
			if cut != nil {
				left = cut.Fields
			}
			if diff := cmp.Diff([]any{tc.kept, tc.left}, []any{got, left}); diff != "" {
				t.Errorf("TruncateStatus (-want +got):\n%s", diff)
			}
		})
	}
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	kept, cut := TruncateStatus(&runtime.RawExtension{Raw: raw}, 0)
	if cut == nil || len(kept.Raw) > MaxStatusBytes || !strings.Contains(string(kept.Raw), `"replicas":3`) {
		t.Errorf("of many small fields %d bytes are kept", len(kept.Raw))
	}
}

func TestDescribeStatusTruncated(t *testing.T) {
	cut := OmittedStatus{Bytes: 40960, Limit: MaxStatusBytes, Fields: []string{"conditions", "images\x1b[2J"}}
	got := cut.Describe("m1", workv1alpha1.ResourceIdentifier{Kind: "Deployment", Namespace: "shop", Name: "web"})
	want := "cluster m1: the status of Deployment shop/web has 40960 bytes and at most 16384 are reflected, nested at most 64 deep; left out: conditions, images?[2J"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Describe (-want +got):\n%s", diff)
	}
}

func FuzzTruncateStatus(f *testing.F) {
	f.Add([]byte(`{"replicas":3}`))
	f.Add([]byte(`{"a":"` + strings.Repeat(`\"`, MaxStatusBytes) + `"}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept, cut := TruncateStatus(&runtime.RawExtension{Raw: raw}, 0)
		if kept != nil && (len(kept.Raw) > MaxStatusBytes || jsonDepth(kept.Raw) > maxStatusDepth) {
			t.Errorf("%d bytes are kept", len(kept.Raw))
		}
		if cut == nil && string(kept.Raw) != string(raw) {
			t.Error("a status that was not cut changed")
		}
	})
}
