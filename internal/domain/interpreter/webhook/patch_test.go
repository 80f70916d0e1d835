package webhook

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

func everyOperation() iter.Seq[configv1alpha1.InterpreterOperation] {
	return func(yield func(configv1alpha1.InterpreterOperation) bool) {
		for _, operation := range interpreter.ScriptOperations() {
			if !yield(operation.Name) {
				return
			}
		}
	}
}

const patchedDocument = `{"a":1,"big":9007199254740993,"empty":{},"f":1.0,"l":[1,{"deep":"x"},3],"m":{"t/y":true,"~":[]},"n":null,"s":"text"}`

func decodeDocument(t testing.TB, text string) map[string]any {
	t.Helper()
	var document map[string]any
	if err := utiljson.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document
}

func TestApplyPatch(t *testing.T) {
	tests := map[string]struct {
		patch, want, fails string
	}{
		"no operations":                           {patch: `[]`, want: patchedDocument},
		"null":                                    {patch: `null`, want: patchedDocument},
		"add sets a field":                        {patch: `[{"op":"add","path":"/empty/b","value":[{}]}]`, want: `{"empty":{"b":[{}]}}`},
		"add replaces a field":                    {patch: `[{"op":"add","path":"/a","value":9223372036854775807}]`, want: `{"a":9223372036854775807}`},
		"add inserts into a list":                 {patch: `[{"op":"add","path":"/l/1","value":2}]`, want: `{"l":[1,2,{"deep":"x"},3]}`},
		"add inserts at the end by index":         {patch: `[{"op":"add","path":"/l/3","value":4}]`, want: `{"l":[1,{"deep":"x"},3,4]}`},
		"add appends":                             {patch: `[{"op":"add","path":"/l/-","value":null}]`, want: `{"l":[1,{"deep":"x"},3,null]}`},
		"add within a list":                       {patch: `[{"op":"add","path":"/l/1/deep","value":[]},{"op":"add","path":"/l/1/deep/-","value":"y"}]`, want: `{"l":[1,{"deep":["y"]},3]}`},
		"an escaped path":                         {patch: `[{"op":"replace","path":"/m/t~1y","value":false},{"op":"add","path":"/m/~0/0","value":0}]`, want: `{"m":{"t/y":false,"~":[0]}}`},
		"remove from a list":                      {patch: `[{"op":"remove","path":"/l/0"}]`, want: `{"l":[{"deep":"x"},3]}`},
		"remove a field":                          {patch: `[{"op":"remove","path":"/l/1/deep"}]`, want: `{"l":[1,{},3]}`},
		"replace in a list":                       {patch: `[{"op":"replace","path":"/l/1","value":{"b":1}}]`, want: `{"l":[1,{"b":1},3]}`},
		"replace with null":                       {patch: `[{"op":"replace","path":"/a","value":null}]`, want: `{"a":null}`},
		"move":                                    {patch: `[{"op":"move","from":"/l/1","path":"/a"}]`, want: `{"a":{"deep":"x"},"l":[1,3]}`},
		"move within a list":                      {patch: `[{"op":"move","from":"/l/0","path":"/l/2"}]`, want: `{"l":[{"deep":"x"},3,1]}`},
		"move to the same place":                  {patch: `[{"op":"move","from":"/m","path":"/m"}]`, want: patchedDocument},
		"a copy is independent":                   {patch: `[{"op":"copy","from":"/l/1","path":"/empty/c"},{"op":"replace","path":"/empty/c/deep","value":"y"}]`, want: `{"empty":{"c":{"deep":"y"}}}`},
		"a test that holds":                       {patch: `[{"op":"test","path":"/m","value":{"~":[],"t/y":true}},{"op":"test","path":"/a","value":1.0},{"op":"test","path":"/f","value":1}]`, want: patchedDocument},
		"an exact test of a large integer":        {patch: `[{"op":"test","path":"/big","value":9007199254740992.0}]`, fails: "the test failed"},
		"a test that fails":                       {patch: `[{"op":"test","path":"/l","value":[1]}]`, fails: `operation 0, op "test" path "/l": the test failed`},
		"a missing field":                         {patch: `[{"op":"add","path":"/x/y","value":1}]`, fails: `there is no field "/x"`},
		"replace of a missing field":              {patch: `[{"op":"replace","path":"/x","value":1}]`, fails: `there is no field "/x"`},
		"remove of a missing field":               {patch: `[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/empty/x"}]`, fails: `operation 1, op "remove" path "/empty/x": there is no field "/empty/x"`},
		"a field of a text":                       {patch: `[{"op":"add","path":"/s/x","value":1}]`, fails: `"/s" is a string, it has no fields`},
		"a field of null":                         {patch: `[{"op":"add","path":"/n/x","value":1}]`, fails: `"/n" is null`},
		"an index that is too high":               {patch: `[{"op":"add","path":"/l/4","value":1}]`, fails: "index 4 is outside a list of 3"},
		"an index that is none":                   {patch: `[{"op":"remove","path":"/l/-"}]`, fails: `"-" is not a list index: give the position in the list as a number`},
		"move into itself":                        {patch: `[{"op":"move","from":"/m","path":"/m/x"}]`, fails: "cannot be moved into itself"},
		"remove everything":                       {patch: `[{"op":"remove","path":""}]`, fails: "a whole document cannot be removed: name the field to remove"},
		"replace everything by a list":            {patch: `[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/0","value":1}]`, fails: "the patched object is a list"},
		"replace everything by null":              {patch: `[{"op":"replace","path":"","value":null}]`, fails: "the patched object is null"},
		"an unknown operation":                    {patch: `[{"op":"merge","path":"/a","value":1}]`, fails: "the operation is unknown"},
		"no operation":                            {patch: `[null]`, fails: "path is missing"},
		"no value":                                {patch: `[{"op":"add","path":"/a"}]`, fails: "value is missing"},
		"no path":                                 {patch: `[{"op":"remove"}]`, fails: "path is missing"},
		"no source":                               {patch: `[{"op":"move","path":"/a"}]`, fails: "from is missing"},
		"a missing source":                        {patch: `[{"op":"copy","from":"/x","path":"/a"}]`, fails: `there is no field "/x"`},
		"a relative path":                         {patch: `[{"op":"remove","path":"a"}]`, fails: `path "a" is not a JSON pointer: begin the path with "/"`},
		"a patch that is a text":                  {patch: `"x"`, fails: "it is no JSON Patch"},
		"an operation that is a text":             {patch: `["x"]`, fails: "it is no JSON Patch"},
		"a path that is a number":                 {patch: `[{"op":"remove","path":1}]`, fails: "it is no JSON Patch"},
		"too many operations":                     {patch: "[" + strings.Repeat(`{"op":"test","path":"/a","value":1},`, maxOperations) + "{}]", fails: "more than 10000"},
		"a path that is too deep":                 {patch: `[{"op":"remove","path":"` + strings.Repeat("/x", maxDepth+1) + `"}]`, fails: "a path has 1001 parts"},
		"a value that is nested too deep":         {patch: `[{"op":"add","path":"/a","value":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}]`, fails: "nested deeper than 1000"},
		"values that are nested by moves":         {patch: "[" + strings.Repeat(`{"op":"add","path":"/b","value":{}},{"op":"move","from":"/l","path":"/b/x"},{"op":"move","from":"/b","path":"/l"},`, 1001) + "{}]", fails: "nested deeper than 1000"},
		"a value that is doubled again and again": {patch: `[{"op":"add","path":"/l","value":["` + strings.Repeat("x", 1000) + `"]}` + strings.Repeat(`,{"op":"copy","from":"/l","path":"/l/-"}`, 100) + "]", fails: "moves or copies more than 64 MiB"},
		"a long list that is shifted again and again": {
			patch: `[{"op":"add","path":"/l","value":[` + strings.Repeat("0,", 50_000) + `0]}` + strings.Repeat(`,{"op":"add","path":"/l/0","value":0}`, 5000) + "]", fails: "moves or copies more than 64 MiB",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			document := decodeDocument(t, patchedDocument)
			got, err := applyPatch(document, []byte(test.patch))
			if diff := cmp.Diff(decodeDocument(t, patchedDocument), document); diff != "" {
				t.Errorf("the argument changed:\n%s", diff)
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("err = %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := decodeDocument(t, patchedDocument)
			for field, value := range decodeDocument(t, test.want) {
				want[field] = value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzPatchAgreesWithLibrary compares single operations with the JSON patch library of upstream
// Karmada: either both return an error, or both return the same document.
func FuzzPatchAgreesWithLibrary(f *testing.F) {
	for _, path := range []string{"/a", "/l/0", "/l/-", "/l/-1", "/l/3", "/l/4", "/l/-4", "/l/-5", "/m/t~1y", "/none/x", "/n/x", "/s/x", "/l/1/deep", "/l/01", "/l/1/deep/x"} {
		for choice := range uint8(6) {
			f.Add(choice, path, "/l/1", `{"new":[1]}`)
		}
	}
	f.Fuzz(func(t *testing.T, choice uint8, path, from, value string) {
		operation := []string{"add", "remove", "replace", "move", "copy", "test"}[choice%6]
		// applyPatch differs from the library on purpose: it refuses a relative path, an empty token for
		// a list, and a move into itself, and compares numbers by value.
		for _, each := range []string{path, from} {
			if !strings.HasPrefix(each, "/") || strings.Contains(each, "//") || strings.HasSuffix(each, "/") {
				return
			}
		}
		var decoded any
		if utiljson.Unmarshal([]byte(value), &decoded) != nil || operation == "test" || operation == "move" && strings.HasPrefix(path+"/", from+"/") {
			return
		}
		text, err := json.Marshal([]map[string]any{{"op": operation, "path": path, "from": from, "value": json.RawMessage(value)}})
		if err != nil {
			return
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			return
		}
		want, wantErr := patch.Apply([]byte(patchedDocument))
		got, gotErr := applyPatch(decodeDocument(t, patchedDocument), text)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%s: library error %v, got error %v", text, wantErr, gotErr)
		}
		if gotErr == nil {
			if diff := cmp.Diff(decodeDocument(t, string(want)), got); diff != "" {
				t.Errorf("%s (-library +got):\n%s", text, diff)
			}
		}
	})
}

// FuzzApplyPatch applies arbitrary patches.
func FuzzApplyPatch(f *testing.F) {
	f.Add(`[{"op":"add","path":"/a","value":{}},{"op":"copy","from":"/l","path":"/a/x"},{"op":"move","from":"/a","path":"/l/-"}]`)
	f.Add(`[{"op":"replace","path":"","value":[[]]},{"op":"add","path":"/0/0","value":1},{"op":"move","from":"/0","path":""}]`)
	f.Fuzz(func(t *testing.T, patch string) {
		document := decodeDocument(t, patchedDocument)
		got, err := applyPatch(document, []byte(patch))
		if !reflect.DeepEqual(document, decodeDocument(t, patchedDocument)) {
			t.Errorf("%s changed the argument", patch)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		if err != nil {
			return
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: encoding the result: %v", patch, err)
		}
	})
}

// FuzzResponses decodes arbitrary responses for every operation.
func FuzzResponses(f *testing.F) {
	for _, fields := range []string{
		``, `,"replicas":1`, `,"healthy":true`, `,"rawStatus":{}`, `,"components":[{"name":"a"}]`, `,"dependencies":[{}]`,
		`,"patchType":"JSONPatch","patch":"W10="`, `,"replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e2147483647"}}`,
	} {
		f.Add(answer(fields))
	}
	f.Fuzz(func(t *testing.T, body string) {
		rules := rulesAnswering(body, nil)
		for operation := range everyOperation() {
			if got, err := interpret(t, rules, operation); err == nil {
				if _, err := json.Marshal(got); err != nil {
					t.Errorf("%s of %s: encoding the result: %v", operation, body, err)
				}
			}
		}
	})
}

// TestPatchChangesOnlyWhatItNames patches one field of random documents.
func TestPatchChangesOnlyWhatItNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}`), jsonValues(3)).Draw(t, "document")
		field, value := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "field"), jsonValues(2).Draw(t, "value")
		text, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/" + field, "value": value}})
		if err != nil {
			t.Fatal(err)
		}
		want := runtime.DeepCopyJSON(document)
		want[field] = value
		got, err := applyPatch(document, text)
		if err != nil {
			t.Fatal(err)
		}
		// The value itself was encoded, which does not tell 1.0 from 1. All other values stay exact.
		if fmt.Sprint(got[field]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", field, got[field], value)
		}
		delete(got, field)
		delete(want, field)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("other fields (-want +got):\n%s", diff)
		}
	})
}

// jsonValues generates JSON values as they are decoded.
func jsonValues(depth int) *rapid.Generator[any] {
	leaves := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](1.0), rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.StringMatching(`[a-zé"~/]{0,4}`), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	if depth == 0 {
		return leaves
	}
	return rapid.OneOf(leaves,
		rapid.Map(rapid.SliceOfN(jsonValues(depth-1), 0, 3), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,2}`), jsonValues(depth-1), 0, 3), func(object map[string]any) any { return object }))
}
