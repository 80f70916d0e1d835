package jsonpointer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPointer checks that Parse parses the result of String to the same pointer.
func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "/a~1b/~0", "/~", "a", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			if text == "" || text[0] == '/' {
				t.Errorf("rejected %q: %v", text, err)
			}
			return
		}
		again, err := Parse(parsed.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed, again); diff != "" {
			t.Errorf("%q changed: %s", text, diff)
		}
	})
}

func TestEdits(t *testing.T) {
	type edit = func(p Pointer, document any) (any, error)
	add := func(p Pointer, document any) (any, error) { return p.Add(document, "new") }
	replace := func(p Pointer, document any) (any, error) { return p.Replace(document, "new") }
	remove := func(p Pointer, document any) (any, error) { return p.Remove(document) }
	tests := map[string]struct {
		edit    edit
		pointer string
		want    any
		fails   Error
	}{
		"add a field":                     {edit: add, pointer: "/b", want: map[string]any{"a": []any{"x", "y"}, "b": "new"}},
		"insert an entry":                 {edit: add, pointer: "/a/1", want: map[string]any{"a": []any{"x", "new", "y"}}},
		"insert behind the last entry":    {edit: add, pointer: "/a/2", want: map[string]any{"a": []any{"x", "y", "new"}}},
		"append an entry":                 {edit: add, pointer: "/a/-", want: map[string]any{"a": []any{"x", "y", "new"}}},
		"insert too far":                  {edit: add, pointer: "/a/3", fails: Error{Pointer: "/a/3", problem: "index 3 is outside a list of 2"}},
		"replace an entry from the end":   {edit: replace, pointer: "/a/-1", want: map[string]any{"a": []any{"x", "new"}}},
		"replace the document":            {edit: replace, pointer: "", want: "new"},
		"replace a missing field":         {edit: replace, pointer: "/b", fails: Error{Pointer: "/b", problem: `there is no field "/b"`}},
		"replace below a missing field":   {edit: replace, pointer: "/b/c", fails: Error{Pointer: "/b/c", ParentMissing: true, problem: `there is no field "/b"`}},
		"replace a field of a string":     {edit: replace, pointer: "/a/0/c", fails: Error{Pointer: "/a/0/c", ParentMissing: true, problem: `"/a/0" is a string, it has no fields`}},
		"remove a field":                  {edit: remove, pointer: "/a", want: map[string]any{}},
		"remove an entry":                 {edit: remove, pointer: "/a/0", want: map[string]any{"a": []any{"y"}}},
		"remove an entry without a place": {edit: remove, pointer: "/a/-", fails: Error{Pointer: "/a/-", Remedy: "give the position in the list as a number", problem: `"-" is not a list index`}},
		"remove the document":             {edit: remove, pointer: "", fails: Error{Remedy: "name the field to remove", problem: "a whole document cannot be removed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pointer, err := Parse(test.pointer)
			if err != nil {
				t.Fatal(err)
			}
			document := map[string]any{"a": []any{"x", "y"}}
			got, err := test.edit(pointer, document)
			if test.fails != (Error{}) {
				var failure *Error
				if !errors.As(err, &failure) || *failure != test.fails {
					t.Errorf("error %#v, want %#v", err, test.fails)
				}
				if diff := cmp.Diff(map[string]any{"a": []any{"x", "y"}}, document); diff != "" {
					t.Errorf("the document changed although the edit failed:\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsWithin(t *testing.T) {
	for _, test := range []struct {
		pointer, parent string
		want            bool
	}{{"/a/b", "/a", true}, {"/a", "/a", true}, {"/a", "", true}, {"/a", "/a/b", false}, {"/ab", "/a", false}} {
		pointer, _ := Parse(test.pointer)
		parent, _ := Parse(test.parent)
		if got := pointer.IsWithin(parent); got != test.want {
			t.Errorf("%q is within %q: %t", test.pointer, test.parent, got)
		}
	}
}
