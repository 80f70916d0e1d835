package override

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// FuzzPatchOperation compares patchOperation with the JSON patch library of upstream Karmada:
// either both return an error, or both return the same document.
func FuzzPatchOperation(f *testing.F) {
	for _, path := range []string{"/a", "/l/0", "/l/-", "/l/-1", "/l/3", "/l/4", "/l/-4", "/l/-5", "/o/x~1y", "/none/x", "/n/x", "/s/x", "/l/1/deep", "/l/+1", "/l/01"} {
		for operator := range uint8(3) {
			f.Add(path, operator, `{"new":[1]}`)
		}
	}
	const document = `{"a":1,"l":[1,{"deep":"x"},3],"o":{"x/y":true},"n":null,"s":"text"}`
	f.Fuzz(func(t *testing.T, path string, choice uint8, raw string) {
		operator := []policyv1alpha1.OverriderOperator{"add", "replace", "remove"}[choice%3]
		// patchOperation differs from the JSON patch library on purpose: it rejects relative paths,
		// replaces a whole document only if the caller allows it, and rejects an empty token for a
		// list.
		if !strings.HasPrefix(path, "/") || path == "/" || strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
			return
		}
		if !json.Valid([]byte(raw)) {
			return
		}
		text, err := json.Marshal([]map[string]any{{"op": operator, "path": path, "value": json.RawMessage(raw)}})
		if err != nil {
			return
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			return
		}
		// Encoding replaces invalid UTF-8, so the path that the library decoded is used.
		if path, err = patch[0].Path(); err != nil {
			return
		}
		want, wantErr := patch.Apply([]byte(document))

		tree, err := decodeValue([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		value, err := decodeValue([]byte(raw))
		if err != nil {
			return
		}
		parsed, err := jsonedit.ParsePointer(path)
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := patchOperation{operator: operator, path: parsed, value: value}.apply(tree)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%s %q: library error %v, got error %v", operator, path, wantErr, gotErr)
		}
		if gotErr != nil {
			if _, remedy := locate(gotErr); remedy == "" {
				t.Errorf("%s %q: %v has no remedy", operator, path, gotErr)
			}
			return
		}
		expected, err := decodeValue(want)
		if err != nil {
			return
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s %q (-library +got):\n%s", operator, path, diff)
		}
	})
}

// FuzzOverrideField checks that a document is either patched completely or not changed.
func FuzzOverrideField(f *testing.F) {
	f.Add(`{"a":[1]}`, "/a/0", "2", true)
	f.Add("a: [1]\n", "/a/-", `"x"`, false)
	f.Add("", "/a", "null", false)
	f.Fuzz(func(t *testing.T, text, path, raw string, asJSON bool) {
		entry := policyv1alpha1.FieldOverrider{FieldPath: "/data/f"}
		value := policyv1alpha1.JSON{Raw: []byte(raw)}
		if asJSON {
			entry.JSON = []policyv1alpha1.JSONPatchOperation{{SubPath: path, Operator: "add", Value: value}}
		} else {
			entry.YAML = []policyv1alpha1.YAMLPatchOperation{{SubPath: path, Operator: "add", Value: value}}
		}
		manifest := parseObject(t, "{kind: ConfigMap, data: {f: x}}")
		manifest.Object["data"].(map[string]any)["f"] = text
		if _, err := overrideField(manifest, entry); err != nil {
			if got := manifest.Object["data"].(map[string]any)["f"]; got != text {
				t.Errorf("error %v, but the text was changed to %q", err, got)
			}
			return
		}
		changed, ok := manifest.Object["data"].(map[string]any)["f"].(string)
		if !ok {
			t.Fatal("the field is no longer a string")
		}
		if asJSON && !json.Valid([]byte(changed)) {
			t.Errorf("%q became %q, which is not JSON", text, changed)
		}
	})
}
