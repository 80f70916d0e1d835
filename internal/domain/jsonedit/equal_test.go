package jsonedit

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestEqualFields(t *testing.T) {
	tests := map[string]struct {
		a, b    map[string]any
		ignored []string
		want    bool
	}{
		"no fields":                          {nil, map[string]any{}, nil, true},
		"an additional field":                {map[string]any{"a": "1"}, map[string]any{"a": "1", "b": nil}, nil, false},
		"a missing field":                    {map[string]any{"a": "1", "b": nil}, map[string]any{"a": "1"}, nil, false},
		"null instead of another field":      {map[string]any{"a": nil}, map[string]any{"b": nil}, nil, false},
		"an ignored field only on the left":  {map[string]any{"a": "1", "s": "x"}, map[string]any{"a": "1"}, []string{"s"}, true},
		"an ignored field only on the right": {map[string]any{"a": "1"}, map[string]any{"a": "1", "s": "x"}, []string{"s"}, true},
		"different ignored fields":           {map[string]any{"s": "x"}, map[string]any{"s": "y"}, []string{"s", "t"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := EqualFields(test.a, test.b, test.ignored...); got != test.want {
				t.Errorf("equal: %v", got)
			}
		})
	}
}

func FuzzEqual(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x",null,true]}`, `{"a":[1,2.5,"x",null,true]}`)
	f.Add(`{"a":1}`, `{"a":1.5}`)
	f.Add(`[]`, `{}`)
	f.Add(`{"a":{}}`, `{"a":null}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var left, right any
		if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil {
			return
		}
		if got, want := Equal(left, right), reflect.DeepEqual(left, right); got != want {
			t.Errorf("%s and %s are equal: %v, reflect.DeepEqual: %v", a, b, got, want)
		}
	})
}
