package script

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
)

// walk reads all values of an object, and returns how many there are.
const walk = `
local function walk(t)
  local n = 0
  for k, v in pairs(t) do
    n = n + 1
    if type(v) == "table" then n = n + walk(v) end
    t[k] = v
  end
  return n
end
`

func FuzzObjectsThatNoScriptChanges(f *testing.F) {
	for _, text := range []string{web, `{"a":null,"l":[null,[],{}],"n":1.5}`, `{"":{"":0},"\u0000":-9223372036854775808}`, `[1]`, `{"l":[1,[2,[3]]]}`} {
		f.Add([]byte(text))
	}
	engine := mustNewEngine(f, Options{})
	identities := []string{
		`function ReviseReplica(o) return o end`,
		walk + `function ReviseReplica(o) walk(o) return o end`,
		walk + `function ReviseReplica(o) o.zzz = {walk(o)} o.zzz = nil return o end`,
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if len(text) > 1<<16 || utiljson.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		if _, isUsed := object["zzz"]; isUsed {
			return
		}
		before := &unstructured.Unstructured{Object: object}
		want := before.DeepCopy()
		for _, script := range identities {
			after, err := rulesOf(engine, revise, script).ReviseReplicas(context.Background(), before, 1)
			if err != nil {
				// Only an object that is nested too deeply.
				continue
			}
			if after != before {
				t.Errorf("%s: got %s, want the argument itself", script, mustEncode(t, after.Object))
			}
			if diff := cmp.Diff(want, before); diff != "" {
				t.Errorf("the argument changed (-before +after):\n%s", diff)
			}
		}
	})
}

func FuzzScripts(f *testing.F) {
	for _, abuse := range abuses {
		f.Add("function InterpretHealth(obj)\n" + abuse.script + "\nend")
	}
	f.Add(healthScript)
	for _, text := range []string{"::a::", "goto a", "return ...", "local a, b = {}, #'x' .. 1 ^ 2", "((((", "{{{{", "not not not", "a.b:c().d[1], e = 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		if Check(text) != nil {
			return
		}
		engine := mustNewEngine(t, Options{})
		engine.timeout = 10 * time.Millisecond
		object := objectOf(t, web)
		_, err := rulesOf(engine, health, text).IsHealthy(context.Background(), object)
		if err != nil && len(err.Error()) > 2*maxMessage {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		if diff := cmp.Diff(objectOf(t, web), object); diff != "" {
			t.Errorf("the argument changed (-before +after):\n%s", diff)
		}
	})
}

// anyValue generates values of unstructured objects.
func anyValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		// A whole float becomes an integer where a script moves it to.
		rapid.Map(rapid.IntRange(-1000, 1000), func(n int) any { return float64(n) + 0.5 }),
		rapid.StringN(0, 4, 8).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := anyValue(depth - 1)
	return rapid.OneOf(append(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 4), func(list []any) any { return list }),
		anyObject(inner).AsAny(),
	)...)
}

func anyObject(values *rapid.Generator[any]) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), values, 0, 4)
}

// TestOnlyTouchedFieldsChange sets one field of random objects, and compares the result with the same
// change in Go.
func TestOnlyTouchedFieldsChange(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	rapid.Check(t, func(t *rapid.T) {
		desired, observed := anyObject(anyValue(3)).Draw(t, "desired"), anyObject(anyValue(3)).Draw(t, "observed")
		// An object that the script fills must not be empty before, because then its type is open.
		desired["spec"] = map[string]any{"kept": desired["a"], "size": int64(1)}
		before, member := &unstructured.Unstructured{Object: desired}, &unstructured.Unstructured{Object: observed}
		walks := rapid.SampledFrom([]string{"", "walk(d)", "walk(o)", "walk(d) walk(o)"}).Draw(t, "walks")
		want := before.DeepCopy()
		want.Object["spec"].(map[string]any)["size"] = int64(2)
		if observed["a"] != nil {
			want.Object["spec"].(map[string]any)["kept"] = observed["a"]
		}
		original := before.DeepCopy()
		script := walk + "function Retain(d, o) " + walks + " d.spec.size = 2 if o.a ~= nil then d.spec.kept = o.a end return d end"
		after, err := rulesOf(engine, retention, script).Retain(context.Background(), before, member)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object, after.Object); diff != "" {
			t.Errorf("the result differs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(original, before); diff != "" {
			t.Errorf("the argument changed (-before +after):\n%s", diff)
		}
	})
}
