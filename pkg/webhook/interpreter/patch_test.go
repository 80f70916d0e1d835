package interpreter

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
)

func TestCreatePatch(t *testing.T) {
	tests := map[string]struct{ from, to, want, fails string }{
		"equal documents":         {from: `{"a":[1,{}],"b":null}`, to: `{"b":null,"a":[1,{}]}`},
		"an added field":          {from: `{}`, to: `{"a":null}`, want: `[{"op":"add","path":"/a","value":null}]`},
		"a removed field":         {from: `{"a":1,"b":{}}`, to: `{"b":{}}`, want: `[{"op":"remove","path":"/a"}]`},
		"a nested field":          {from: `{"a":{"b":{"c":1,"d":2}}}`, to: `{"a":{"b":{"c":1,"d":"x"}}}`, want: `[{"op":"replace","path":"/a/b/d","value":"x"}]`},
		"an exact integer":        {from: `{"a":9007199254740992}`, to: `{"a":9007199254740993}`, want: `[{"op":"replace","path":"/a","value":9007199254740993}]`},
		"an entry of a list":      {from: `{"a":[1,2,{"x":1}]}`, to: `{"a":[1,3,{"x":2}]}`, want: `[{"op":"replace","path":"/a/1","value":3},{"op":"replace","path":"/a/2/x","value":2}]`},
		"a longer list":           {from: `{"a":[1]}`, to: `{"a":[1,2]}`, want: `[{"op":"replace","path":"/a","value":[1,2]}]`},
		"another type":            {from: `{"a":[]}`, to: `{"a":{}}`, want: `[{"op":"replace","path":"/a","value":{}}]`},
		"a name with a slash":     {from: `{"a/b":1,"c~d":1}`, to: `{"a/b":2,"c~d":2}`, want: `[{"op":"replace","path":"/a~1b","value":2},{"op":"replace","path":"/c~0d","value":2}]`},
		"the whole document":      {from: `1`, to: `[]`, want: `[{"op":"replace","path":"","value":[]}]`},
		"an original that is bad": {from: `{`, to: `{}`, fails: "decoding the original object: "},
		"a current that is bad":   {from: `{}`, to: `{}}`, fails: "decoding the current object: there is text after"},
		"a missing document":      {from: `{}`, fails: "decoding the current object: EOF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := createPatch([]byte(test.from), []byte(test.to))
			if test.fails != "" {
				response := PatchResponseFromRaw([]byte(test.from), []byte(test.to))
				if err == nil || !strings.HasPrefix(err.Error(), test.fails) || response.Successful || response.Status.Code != 500 {
					t.Errorf("err = %v, response %+v", err, response)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCreatePatch checks with a JSON patch library that a patch results in the current document.
func FuzzCreatePatch(f *testing.F) {
	f.Add(`{"a":[1,{"b":2}],"c":null,"~/":{}}`, `{"a":[1,{"b":3,"d":[]}],"~/":{"x":1.5}}`)
	f.Add(`{"":1}`, `{"":{"":2}}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		if !strings.HasPrefix(from, "{") || !strings.HasPrefix(to, "{") {
			return
		}
		patch, err := createPatch([]byte(from), []byte(to))
		if err != nil {
			return
		}
		want, err := decodeExactly([]byte(to))
		if err != nil {
			t.Fatal(err)
		}
		if patch == nil {
			if got, err := decodeExactly([]byte(from)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("no patch from %s to %s", from, to)
			}
			return
		}
		// Duplicate names and invalid UTF-8 have no meaning that both sides must share.
		original, err := decodeExactly([]byte(from))
		if err != nil {
			t.Fatal(err)
		}
		clean, err := json.Marshal(original)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
		applied, err := decoded.Apply(clean)
		if err != nil {
			t.Fatalf("%s to %s: %v", patch, clean, err)
		}
		if got, err := decodeExactly(applied); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s to %s: error %v, (-want +got):\n%s", patch, clean, err, cmp.Diff(want, got))
		}
	})
}
