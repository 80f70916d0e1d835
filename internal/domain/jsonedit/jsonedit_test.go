package jsonedit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/domain/jsonedit"
)

func TestSet(t *testing.T) {
	tests := map[string]struct {
		object  string
		path    []string
		want    string
		wantErr bool
	}{
		"a value is replaced":                     {`{"a": 1, "b":2}`, []string{"a"}, `{"a": "x", "b":2}`, false},
		"a missing field becomes the first":       {`{"b":2}`, []string{"a"}, `{"a":"x","b":2}`, false},
		"an empty object gets the field":          {`{ }`, []string{"a"}, `{"a":"x" }`, false},
		"a nested value is replaced":              {`{"m":{"a":{"k":"old"}},"z":1e100}`, []string{"m", "a", "k"}, `{"m":{"a":{"k":"x"}},"z":1e100}`, false},
		"missing objects are created":             {`{"m":{}}`, []string{"m", "a", "k"}, `{"m":{"a":{"k":"x"}}}`, false},
		"null is replaced by an object":           {`{"m":null}`, []string{"m", "a"}, `{"m":{"a":"x"}}`, false},
		"an escaped key is the same key":          {`{"\u0061":1}`, []string{"a"}, `{"\u0061":"x"}`, false},
		"large numbers keep their digits":         {`{"n":12345678901234567890,"a":1}`, []string{"a"}, `{"n":12345678901234567890,"a":"x"}`, false},
		"strings with delimiters are skipped":     {`{"s":"}],\"{[","a":1}`, []string{"a"}, `{"s":"}],\"{[","a":"x"}`, false},
		"a field that occurs twice is an error":   {`{"a":1,"a":2}`, []string{"a"}, "", true},
		"a path through a number is an error":     {`{"m":1}`, []string{"m", "a"}, "", true},
		"an array is not an object":               {`[]`, []string{"a"}, "", true},
		"a document that ends early is an error":  {`{"a":{"b":1}`, []string{"a"}, "", true},
		"a document without a colon is an error":  {`{"a" 1}`, []string{"a"}, "", true},
		"a document with a lone comma is invalid": {`{"a":,}`, []string{"a"}, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonedit.Set(nil, []byte(test.object), []byte(`"x"`), test.path...)
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			if err == nil && string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	tests := map[string]struct {
		object, want string
		path         []string
	}{
		"the only field":          {`{"a":1}`, `{}`, []string{"a"}},
		"the first field":         {`{"a":1, "b":2}`, `{ "b":2}`, []string{"a"}},
		"the last field":          {`{"a":1 , "b":2}`, `{"a":1 }`, []string{"b"}},
		"a nested field":          {`{"m":{"a":{"k":1,"l":2}}}`, `{"m":{"a":{"l":2}}}`, []string{"m", "a", "k"}},
		"a missing field":         {`{"m":{}}`, `{"m":{}}`, []string{"m", "a", "k"}},
		"a field of null":         {`{"m":null}`, `{"m":null}`, []string{"m", "a"}},
		"a field between others":  {`{"a":1,"b":[2,{"b":3}],"c":4}`, `{"a":1,"c":4}`, []string{"b"}},
		"an object of a few tabs": {"{\t\"a\":1\n}", "{\t}", []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonedit.Remove(nil, []byte(test.object), test.path...)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(got) {
				t.Errorf("%s is invalid", got)
			}
			var gotValue, want any
			_ = json.Unmarshal(got, &gotValue)
			_ = json.Unmarshal([]byte(test.want), &want)
			if diff := cmp.Diff(want, gotValue); diff != "" {
				t.Errorf("got %s:\n%s", got, diff)
			}
		})
	}
}

func TestGetString(t *testing.T) {
	object := []byte(`{"metadata":{"name":"\u0061b","labels":null},"count":3}`)
	if got, err := jsonedit.GetString(object, "metadata", "name"); got != "ab" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, path := range [][]string{{"metadata", "labels", "x"}, {"metadata", "labels"}, {"missing", "x"}} {
		if got, err := jsonedit.GetString(object, path...); got != "" || err != nil {
			t.Errorf("%v: got %q, %v", path, got, err)
		}
	}
	if _, err := jsonedit.GetString(object, "count"); err == nil {
		t.Error("a number is returned as a string")
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: nil, `[ 1 , {"a":[2]},"]"]`: {"1", `{"a":[2]}`, `"]"`}, "[null]": {"null"},
	} {
		var got []string
		err := jsonedit.EachElement([]byte(text), func(element []byte) error { got = append(got, string(element)); return nil })
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "{}", "[", "[1", `["a`, "[{]"} {
		if err := jsonedit.EachElement([]byte(text), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// FuzzSet checks that changing a valid document has the same effect as decoding, changing and encoding
// it, and that invalid documents cause no panic.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a":{"b":null},"c":[1,2]}`), "a", "b")
	f.Add([]byte(`{"\u0061":1}`), "a", "x")
	f.Fuzz(func(t *testing.T, document []byte, first, second string) {
		got, err := jsonedit.Set(nil, document, []byte("true"), first, second)
		removed, removeErr := jsonedit.Remove(nil, document, first, second)
		var before map[string]any
		if !json.Valid(document) || json.Unmarshal(document, &before) != nil || before == nil {
			return
		}
		if first != string([]rune(first)) || second != string([]rune(second)) {
			return // the encoder replaces invalid UTF-8 in a key
		}
		if err == nil {
			want := maps.Clone(before)
			inner, _ := want[first].(map[string]any)
			if inner = maps.Clone(inner); inner == nil {
				inner = map[string]any{}
			}
			inner[second], want[first] = true, inner
			checkEqual(t, got, want)
		}
		if inner, ok := before[first].(map[string]any); removeErr == nil && ok {
			want := maps.Clone(before)
			inner = maps.Clone(inner)
			delete(inner, second)
			want[first] = inner
			checkEqual(t, removed, want)
		}
	})
}

func checkEqual(t *testing.T, got []byte, want map[string]any) {
	t.Helper()
	var after map[string]any
	if err := json.Unmarshal(got, &after); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if !reflect.DeepEqual(after, want) {
		t.Fatalf("got %s, want %v", got, want)
	}
}
