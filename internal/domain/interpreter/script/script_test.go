package script

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// clock is a clock that advances by step whenever it is read.
type clock struct {
	mu   sync.Mutex
	time time.Time
	step time.Duration
}

func newClock(step time.Duration) *clock {
	return &clock{time: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), step: step}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(c.step)
	return c.time
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

func mustNewEngine(t testing.TB, options Options) *Engine {
	t.Helper()
	if options.Now == nil {
		options.Now = newClock(0).now
	}
	engine, err := NewEngine(options)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// rulesOf returns the rules of a kind with one script for an operation.
func rulesOf(engine *Engine, operation configv1alpha1.InterpreterOperation, texts ...string) interpreter.Rules {
	scripts := interpreter.Scripts{}
	for _, text := range texts {
		scripts[operation] = append(scripts[operation], interpreter.Script{Customization: "workload", Text: text})
	}
	return engine.Rules(scripts)
}

func mustDecode(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

func mustEncode(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: mustDecode(t, text)}
}

// evaluate returns the JSON of the table that a script returns. The script has the variable obj.
func evaluate(t testing.TB, engine *Engine, script, object string) (string, error) {
	t.Helper()
	rules := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretStatus, "function ReflectStatus(obj)\n"+script+"\nend")
	status, err := rules.ReflectStatus(context.Background(), objectOf(t, object))
	if err != nil {
		return "", err
	}
	return string(status.Raw), nil
}

func TestScriptsOfUsers(t *testing.T) {
	tests := map[string]struct{ script, object, want string }{
		"a field is read":                 {`return {r = obj.spec.replicas}`, `{"spec":{"replicas":3}}`, `{"r":3}`},
		"a missing field is nil":          {`return {r = obj.spec == nil, s = obj.a and obj.a.b}`, `{}`, `{"r":true}`},
		"a list is traversed by index":    {`local n = 0; for i = 1, #obj.l do n = n + obj.l[i] end return {n = n}`, `{"l":[1,2,3]}`, `{"n":6}`},
		"a list is traversed with ipairs": {`local n = 0; for _, c in ipairs(obj.l or {}) do n = n + c.v end return {n = n}`, `{"l":[{"v":1},{"v":2}]}`, `{"n":3}`},
		"a missing list is empty":         {`local n = 0; for _, c in ipairs(obj.l or {}) do n = n + c.v end return {n = n}`, `{}`, `{"n":0}`},
		"fields are traversed in order":   {`local s = ""; for k, v in pairs(obj) do s = s .. k .. v end return {s = s}`, `{"b":2,"a":1,"c":3}`, `{"s":"a1b2c3"}`},
		"entries are inserted":            {`local l = {}; table.insert(l, "b"); table.insert(l, 1, "a"); l[#l + 1] = "c" return {l = l}`, `{}`, `{"l":["a","b","c"]}`},
		"quantities are added":            {`local kube = require("kube"); return {q = kube.resourceAdd("100m", "1", nil)}`, `{}`, `{"q":"1100m"}`},
		"strings are formatted":           {`return {s = string.format("%s-%d", "a", 3), u = ("x"):upper()}`, `{}`, `{"s":"a-3","u":"X"}`},
		"strings get methods":             {`function string.double(s) return s .. s end return {s = ("x"):double()}`, `{}`, `{"s":"xx"}`},
		"a status is filled":              {`obj.status = {}; obj.status.ready = 2; return obj.status`, `{"status":{"old":1}}`, `{"ready":2}`},
		"a status is changed":             {`obj.status.ready = 2; obj.status.old = nil; return obj.status`, `{"status":{"old":1,"kept":{}}}`, `{"kept":{},"ready":2}`},
		"a table with holes in between":   {`local t = {1, nil, 3}; return {n = #t}`, `{}`, `{"n":3}`},
		"several variables are assigned":  {`local t = {}; local i = 1; i, t[i], t.x = i + 1, "a", "b"; return {i = i, a = t[1], x = t.x}`, `{}`, `{"a":"a","i":2,"x":"b"}`},
		"functions have varargs":          {`local function f(...) return select("#", ...), ... end; local n, a = f("x", nil, "z"); return {n = n, a = a}`, `{}`, `{"a":"x","n":3}`},
		"functions have the table arg":    {`local function f(...) return arg.n, arg[1] end; local n, a = f("x", nil); return {n = n, a = a}`, `{}`, `{"a":"x","n":2}`},
		"functions are recursive":         {`local function f(n) if n == 0 then return 1 end return n * f(n - 1) end return {n = f(5)}`, `{}`, `{"n":120}`},
		"tail calls need no stack":        {`local function f(n) if n == 0 then return "end" end return f(n - 1) end return {s = f(1000)}`, `{}`, `{"s":"end"}`},
		"methods are defined":             {`local t = {v = 1}; function t:add(n) self.v = self.v + n end; t:add(2); return {v = t.v}`, `{}`, `{"v":3}`},
		"a parameter is concatenated":     {`local function f(a) a = a .. "!" return a end return {s = f("x")}`, `{}`, `{"s":"x!"}`},
		"a loop is continued with goto":   {`local n = 0; for i = 1, 4 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return {n = n}`, `{}`, `{"n":4}`},
		"errors are caught":               {`local ok, e = pcall(function() error("bad") end); return {ok = ok, e = e}`, `{}`, `{"e":"script:2: bad","ok":false}`},
		"errors are handled":              {`local ok, e = xpcall(function() error({code = 7}) end, function(e) return e.code end); return {ok = ok, e = e}`, `{}`, `{"e":7,"ok":false}`},
		"values pass a protected call":    {`local ok, a, b = pcall(function(...) return ... end, 1, 2); return {ok = ok, a = a, b = b}`, `{}`, `{"a":1,"b":2,"ok":true}`},
		"the clock is the one of Go":      {`return {t = os.time(), d = os.date("!%Y-%m-%d")}`, `{}`, `{"d":"2030-01-02","t":1893553445}`},
		"entries are sorted":              {`table.sort(obj.l, function(a, b) return a > b end); return {l = obj.l}`, `{"l":[1,3,2]}`, `{"l":[3,2,1]}`},
		"entries are removed":             {`table.remove(obj.l, 1); return {l = obj.l}`, `{"l":[{"a":{}},{"b":[]}]}`, `{"l":[{"b":[]}]}`},
		"a table keeps its identity":      {`return {same = obj.a == obj.a, l = obj.l[1] == obj.l[1]}`, `{"a":{},"l":[{}]}`, `{"l":true,"same":true}`},
		"an entry that is set to nil":     {`obj.a = nil; return {a = obj.a == nil, b = obj.b}`, `{"a":1,"b":2}`, `{"a":true,"b":2}`},
		"constructors have computed keys": {`local k = "x"; return {a = {[k] = 1, [k .. "y"] = 2}, l = {[1] = "a", [2] = "b"}}`, `{}`, `{"a":{"x":1,"xy":2},"l":["a","b"]}`},
		"constructors take all values":    {`local function f() return 2, 3 end; return {l = {1, f()}, m = {f(), 1}, n = {f(), x = nil}}`, `{}`, `{"l":[1,2,3],"m":[2,1],"n":[2]}`},
		"a negative zero is a zero":       {`return {z = -0}`, `{}`, `{"z":0}`},
	}
	engine := mustNewEngine(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, engine, test.script, test.object)
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
