package jsonedit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPointer checks that parsing a pointer's String returns the same pointer.
func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "/a~1b/~0", "/~", "a", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParsePointer(text)
		if err != nil {
			if text == "" || text[0] == '/' {
				t.Errorf("rejected %q: %v", text, err)
			}
			return
		}
		again, err := ParsePointer(parsed.String())
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
	addNew := func(p Pointer, document any) (any, error) { return p.Add(document, "new") }
	replaceNew := func(p Pointer, document any) (any, error) { return p.Replace(document, "new") }
	removeAny := func(p Pointer, document any) (any, error) { return p.Remove(document) }
	tests := map[string]struct {
		edit    edit
		pointer string
		want    any
		fails   PointerError
	}{
		"add a field":                     {edit: addNew, pointer: "/b", want: map[string]any{"a": []any{"x", "y"}, "b": "new"}},
		"insert an entry":                 {edit: addNew, pointer: "/a/1", want: map[string]any{"a": []any{"x", "new", "y"}}},
		"insert behind the last entry":    {edit: addNew, pointer: "/a/2", want: map[string]any{"a": []any{"x", "y", "new"}}},
		"append an entry":                 {edit: addNew, pointer: "/a/-", want: map[string]any{"a": []any{"x", "y", "new"}}},
		"insert too far":                  {edit: addNew, pointer: "/a/3", fails: PointerError{Pointer: "/a/3", problem: "index 3 is outside a list of 2"}},
		"replace an entry from the end":   {edit: replaceNew, pointer: "/a/-1", want: map[string]any{"a": []any{"x", "new"}}},
		"replace the document":            {edit: replaceNew, pointer: "", want: "new"},
		"replace a missing field":         {edit: replaceNew, pointer: "/b", fails: PointerError{Pointer: "/b", problem: `there is no field "/b"`}},
		"replace below a missing field":   {edit: replaceNew, pointer: "/b/c", fails: PointerError{Pointer: "/b/c", ParentMissing: true, problem: `there is no field "/b"`}},
		"replace a field of a string":     {edit: replaceNew, pointer: "/a/0/c", fails: PointerError{Pointer: "/a/0/c", ParentMissing: true, problem: `"/a/0" is a string, it has no fields`}},
		"remove a field":                  {edit: removeAny, pointer: "/a", want: map[string]any{}},
		"remove an entry":                 {edit: removeAny, pointer: "/a/0", want: map[string]any{"a": []any{"y"}}},
		"remove an entry without a place": {edit: removeAny, pointer: "/a/-", fails: PointerError{Pointer: "/a/-", Remedy: "give the position in the list as a number", problem: `"-" is not a list index`}},
		"remove the document":             {edit: removeAny, pointer: "", fails: PointerError{Remedy: "name the field to remove", problem: "a whole document cannot be removed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pointer, err := ParsePointer(test.pointer)
			if err != nil {
				t.Fatal(err)
			}
			document := map[string]any{"a": []any{"x", "y"}}
			got, err := test.edit(pointer, document)
			if test.fails != (PointerError{}) {
				var failure *PointerError
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
		pointer, _ := ParsePointer(test.pointer)
		parent, _ := ParsePointer(test.parent)
		if got := pointer.IsWithin(parent); got != test.want {
			t.Errorf("%q is within %q: %t", test.pointer, test.parent, got)
		}
	}
}
