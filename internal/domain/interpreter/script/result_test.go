package script

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retain runs a script with the function Retain(d, o).
func retain(t testing.TB, engine *Engine, script, desired, observed string) (before, after *unstructured.Unstructured, err error) {
	t.Helper()
	before = objectOf(t, desired)
	rules := rulesOf(engine, retention, "function Retain(d, o)\n"+script+"\nend")
	after, err = rules.Retain(context.Background(), before, objectOf(t, observed))
	return before, after, err
}

func TestResults(t *testing.T) {
	tests := map[string]struct{ script, desired, observed, want string }{
		"an untouched object is the argument":                   {`return d`, `{"a":{"b":[1,{}]}}`, `{}`, "same"},
		"a read object is the argument":                         {`local x = d.a.b[2] for k, v in pairs(d.a) do x = v end return d`, `{"a":{"b":[1,{}]}}`, `{}`, "same"},
		"an object with equal values is the argument":           {`d.a = {b = {1, {}}} return d`, `{"a":{"b":[1,{}]}}`, `{}`, "same"},
		"a copied object is the argument":                       {`local c = {} for k, v in pairs(d) do c[k] = v end return c`, `{"a":{"b":[1,{}]},"c":9007199254740993}`, `{}`, "same"},
		"a field that is set and reset":                         {`local x = d.a d.a = 7 d.a = x return d`, `{"a":1}`, `{}`, "same"},
		"a field that is missing and set to nil":                {`d.b = nil return d`, `{"a":1}`, `{}`, "same"},
		"a new empty field that is no object in any input":      {`d.b = {} return d`, `{"a":1}`, `{}`, "same"},
		"null values stay":                                      {`d.b = 2 return d`, `{"a":null,"b":1,"l":[null,1,null]}`, `{}`, `{"a":null,"b":2,"l":[null,1,null]}`},
		"null values stay in loaded tables":                     {`for k, v in pairs(d) do end d.b = 2 for i, v in ipairs(d.l) do end return d`, `{"a":null,"b":1,"l":[null,1,null]}`, `{}`, `{"a":null,"b":2,"l":[null,1,null]}`},
		"null values can be set":                                {`d.a = 2 return d`, `{"a":null}`, `{}`, `{"a":2}`},
		"objects and lists with only null values stay":          {`for k, v in pairs(d.a) do end local n = #d.l for i, v in ipairs(d.l) do end d.c = 1 return d`, `{"a":{"b":null},"l":[null]}`, `{}`, `{"a":{"b":null},"c":1,"l":[null]}`},
		"untouched empty values stay":                           {`d.n = 2 return d`, `{"e":{},"l":[],"n":1}`, `{}`, `{"e":{},"l":[],"n":2}`},
		"loaded empty values stay":                              {`for k, v in pairs(d.e) do end for i, v in ipairs(d.l) do end d.n = 2 return d`, `{"e":{},"l":[],"n":1}`, `{}`, `{"e":{},"l":[],"n":2}`},
		"an empty table where desired has an empty object":      {`d.s = {a = {}, x = 1} return d`, `{"s":{"a":{}}}`, `{}`, `{"s":{"a":{},"x":1}}`},
		"an empty table where observed has an empty list":       {`d.s = {a = {}, x = 1} return d`, `{}`, `{"s":{"a":[]}}`, `{"s":{"a":[],"x":1}}`},
		"an empty table in a list, by the path without index":   {`d.l = {{x = 1, v = {}}, {x = 2, v = {}}} return d`, `{"l":[{"v":1},{"v":{}}]}`, `{}`, `{"l":[{"v":{},"x":1},{"v":{},"x":2}]}`},
		"an empty table that is nowhere empty is removed":       {`d.s = {a = {}, x = 1} return d`, `{"s":{"a":{"b":1}}}`, `{}`, `{"s":{"x":1}}`},
		"an object that the script empties is removed":          {`d.s.a = nil return d`, `{"s":{"a":1},"x":1}`, `{}`, `{"x":1}`},
		"a list that the script empties is removed":             {`table.remove(d.l) return d`, `{"l":[1],"x":1}`, `{}`, `{"x":1}`},
		"an empty table in a list stays an object":              {`d.l = {{}, {}} return d`, `{}`, `{}`, `{"l":[{},{}]}`},
		"a changed field in an entry":                           {`d.l[2].a = 5 return d`, `{"l":[{"a":{}},{"a":1,"b":[]},7]}`, `{}`, `{"l":[{"a":{}},{"a":5,"b":[]},7]}`},
		"entries that are moved":                                {`d.l[1], d.l[3] = d.l[3], d.l[1] return d`, `{"l":[{"a":{}},2,{"b":[]}]}`, `{}`, `{"l":[{"b":[]},2,{"a":{}}]}`},
		"an entry that is appended":                             {`d.l[#d.l + 1] = o.x return d`, `{"l":[{"a":{}}]}`, `{"x":{"y":[]}}`, `{"l":[{"a":{}},{"y":[]}]}`},
		"many fields are set":                                   {`for i = 1, 40 do d["k" .. i] = {} d["k" .. i] = i end for i = 2, 40 do d["k" .. i] = nil end return d`, `{"a":{}}`, `{}`, `{"a":{},"k1":1}`},
		"integers are exact":                                    {`d.x = {d.a, d.b, o.c} return d`, `{"a":9007199254740993,"b":-9223372036854775808,"l":[9223372036854775807]}`, `{"c":9007199254740995}`, `{"a":9007199254740993,"b":-9223372036854775808,"l":[9223372036854775807],"x":[9007199254740993,-9223372036854775808,9007199254740995]}`},
		"integers with one number stay in their fields":         {`for k, v in pairs(d) do d[k] = v end return d`, `{"a":9007199254740993,"b":9007199254740992}`, `{}`, "same"},
		"integers in replaced lists stay in their entries":      {`local l = {} for i, v in ipairs(d.l) do l[i] = v end d.l = l d.x = 1 return d`, `{"l":[9007199254740993,9007199254740992]}`, `{}`, `{"l":[9007199254740993,9007199254740992],"x":1}`},
		"a whole float stays a float in its field":              {`d.b = d.a + 0.5 return d`, `{"a":1.0,"b":0}`, `{}`, `{"a":1,"b":1.5}`},
		"a large number is a float":                             {`d.a = 1e300 return d`, `{}`, `{}`, `{"a":1e+300}`},
		"integers next to the first inexact one":                {`d.x = d.a local y = d.b return d`, `{"a":9007199254740992,"b":9007199254740993}`, `{}`, `{"a":9007199254740992,"b":9007199254740993,"x":9007199254740992}`},
		"null values at the end of a changed list stay":         {`d.l[1] = 2 return d`, `{"l":[1,null]}`, `{}`, `{"l":[2,null]}`},
		"null values end with the entries after them":           {`d.l[3] = nil d.m[2] = 3 return d`, `{"l":[1,null,3,null],"m":[1,null]}`, `{}`, `{"l":[1],"m":[1,3]}`},
		"null values stay in a loaded object that is emptied":   {`for k in pairs(d.m) do end d.m.a = nil return d`, `{"m":{"a":1,"b":null}}`, `{}`, `{"m":{"b":null}}`},
		"a name that is an object":                              {`d.metadata = o.metadata return d`, `{"metadata":{"name":{}}}`, `{"metadata":{"name":{"a":1}}}`, "error: another metadata.name"},
		"a table with numbers and names":                        {`d.a = {1, x = 2} return d`, `{}`, `{}`, "error: the value at a of the result has the entry 1 to 1 and the key 'x' with a number"},
		"a table with a gap":                                    {`d.a = {1, nil, 3} return d`, `{}`, `{}`, "error: the value at a of the result is a list with a gap: the entry 2 is nil"},
		"a table with large numbers":                            {`d.a = {b = {[0] = 1}} return d`, `{}`, `{}`, "error: the value at a.b of the result has the key '0', which is a number: keys must be strings"},
		"a table with boolean keys":                             {`d.a = {[true] = 1} return d`, `{}`, `{}`, "error: the value at a of the result has the key 'true', which is a boolean"},
		"a number that is not finite":                           {`d.l = {1, 1/0} return d`, `{}`, `{}`, "error: the value at l[2] of the result is the number +Inf, which JSON does not have"},
		"a function":                                            {`d.f = print return d`, `{}`, `{}`, "error: the value at f of the result is a function, which JSON does not have"},
		"a cut character":                                       {`d.l = {o.x, string.sub(o.x, 1, 1)} return d`, `{}`, `{"x":"ä"}`, "error: the value at l[2] of the result is a string that is not valid UTF-8: do not cut"},
		"a cut character in a key":                              {`d.m = {[string.sub(o.x, 1, 1)] = 1} return d`, `{}`, `{"x":"ä"}`, `error: the value at m of the result has the key "�", which is not valid UTF-8`},
		"a library":                                             {`d.f = string return d`, `{}`, `{}`, "same"},
		"a library that was changed":                            {`string.x = 1 d.f = string return d`, `{}`, `{}`, `{"f":{"x":1}}`},
		"a table that contains itself":                          {`d.a = {} d.a.b = {d.a} return d`, `{}`, `{}`, "error: the value at a.b[1] of the result contains itself"},
		"an object that contains itself":                        {`d.a = d return d`, `{}`, `{}`, "error: the value at a of the result contains itself"},
		"a table that is in two places":                         {`local x = {b = 1} d.a = x d.c = x return d`, `{}`, `{}`, `{"a":{"b":1},"c":{"b":1}}`},
		"a name on a list":                                      {`d.l.x = 1 return d`, `{"l":[1]}`, `{}`, "error: the value at l of the result has the entry 1 to 1 and the key 'x'"},
		"an entry in an empty object":                           {`d.e[1] = "a" return d`, `{"e":{}}`, `{}`, `{"e":["a"]}`},
		"a name in an empty list":                               {`d.e.a = 1 return d`, `{"e":[]}`, `{}`, `{"e":{"a":1}}`},
		"a key that is nil":                                     {`d[o.x] = 1 return d`, `{}`, `{}`, "error: line 2: table index is nil"},
		"a key that is not a number":                            {`d[0/0] = 1 return d`, `{}`, `{}`, "error: line 2: table index is NaN"},
		"the global variables":                                  {`x = 1 return {apiVersion = nil, g = _G.x}`, `{}`, `{}`, `{"g":1}`},
		"a deep change copies only its path":                    {`d.a.b.c.x = 1 return d`, `{"a":{"b":{"c":{},"d":{}},"e":[{}]}}`, `{}`, `{"a":{"b":{"c":{"x":1},"d":{}},"e":[{}]}}`},
		"a field of observed is read and kept":                  {`d.x = o.x return d`, `{}`, `{"x":{"e":{},"l":[],"n":null}}`, `{"x":{"e":{},"l":[],"n":null}}`},
		"a field of observed is changed, observed itself isn't": {`d.x = o.x d.x.y = 1 return d`, `{}`, `{"x":{"e":{}}}`, `{"x":{"e":{},"y":1}}`},
	}
	engine := mustNewEngine(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after, err := retain(t, engine, test.script, test.desired, test.observed)
			if diff := cmp.Diff(mustDecode(t, test.desired), before.Object); diff != "" {
				t.Errorf("the argument changed (-before +after):\n%s", diff)
			}
			want, wantsError := strings.CutPrefix(test.want, "error: ")
			switch {
			case wantsError:
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("err = %v, want %q", err, want)
				}
			case err != nil:
				t.Error(err)
			case want == "same":
				if after != before {
					t.Errorf("got %s, want the argument itself", mustEncode(t, after.Object))
				}
			case mustEncode(t, after.Object) != want:
				t.Errorf("got %s, want %s", mustEncode(t, after.Object), want)
			}
		})
	}
}

func TestMovedValuesAreCopies(t *testing.T) {
	tests := map[string]struct{ script, first, second string }{
		"a value of the observed object":    {`d.spec = o.spec return d`, "spec", ""},
		"a value at two places":             {`d.a, d.b = o.spec, o.spec return d`, "a", "b"},
		"a value at two places in a list":   {`d.l = {o.spec, o.spec} return {a = d.l[1], b = d.l[2], apiVersion = nil}`, "a", "b"},
		"a value in a changed value":        {`d.a = o.spec o.spec.x = 1 return d`, "a", ""},
		"a value of desired at a new place": {`d.a = d.kept return d`, "a", "kept"},
	}
	engine := mustNewEngine(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			desired, observed := objectOf(t, `{"kept":{"m":{"v":1}}}`), objectOf(t, `{"spec":{"m":{"v":1}}}`)
			rules := rulesOf(engine, retention, "function Retain(d, o)\n"+test.script+"\nend")
			retained, err := rules.Retain(context.Background(), desired, observed)
			if err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(retained.Object, int64(2), test.first, "m", "v"); err != nil {
				t.Fatal(err)
			}
			if value, _, _ := unstructured.NestedInt64(observed.Object, "spec", "m", "v"); value != 1 {
				t.Error("a change of the result changes the observed object")
			}
			if value, _, _ := unstructured.NestedInt64(desired.Object, "kept", "m", "v"); value != 1 {
				t.Error("a change of the result changes the desired object")
			}
			if test.second == "" {
				return
			}
			if value, _, _ := unstructured.NestedInt64(retained.Object, test.second, "m", "v"); value != 1 {
				t.Error("a change of one place of the result changes the other place")
			}
		})
	}
}
