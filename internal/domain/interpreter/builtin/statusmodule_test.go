package builtin_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// clock is the time of scripts in tests. Tests may advance it.
type clock struct{ time time.Time }

func newClock() *clock { return &clock{time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)} }

func newEngine(t testing.TB, clock *clock) *script.Engine {
	t.Helper()
	engine, err := script.NewEngine(script.Options{Now: func() time.Time { return clock.time }, Modules: builtin.Modules()})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// TestStatusModule calls functions of the module status. Each expression returns a table with the
// result.
func TestStatusModule(t *testing.T) {
	const items = `{
		{clusterName = "a", status = {count = 1, time = "2026-01-02T00:00:00Z", text = "x", list = {1, 2},
			conditions = {{type = "Ready", status = "True", reason = "Done", message = "m1"}, {type = "Slow", status = "False"}}}},
		{clusterName = "b"},
		{clusterName = "c", status = {count = 5, time = "2026-01-01T00:00:00Z", text = "", list = {3},
			conditions = {{type = "Ready", status = "True", reason = "Done", message = "m2"}, {type = "Ready", status = "False", reason = "Done", message = "m3"}}}},
		{clusterName = "d", status = {count = "wrong", time = 7, text = "y", list = 1, conditions = "wrong"}},
	}`
	observed := func(generation, templateGeneration string) string {
		return `{{status = {generation = ` + generation + `, observedGeneration = 4, resourceTemplateGeneration = ` + templateGeneration + `}}}`
	}
	setObserved := func(items string) string {
		return `(function() local template = {metadata = {generation = 9}, status = {observedGeneration = 3}}
			status.setObservedGeneration(template, ` + items + `) return template.status end)()`
	}
	set := func(call string) string {
		return `(function() local total, items = {}, ` + items + ` status.` + call + ` return total end)()`
	}
	stamp := func(status, message string) string {
		return `status.stamp({status = {conditions = {{type = "A", status = "True", message = "m", lastTransitionTime = "t1", lastUpdateTime = "t2"}}}},
			{type = "A", status = "` + status + `", message = "` + message + `"}, "lastUpdateTime")`
	}
	tests := map[string]struct{ expression, want string }{
		"a sum skips missing and wrong values":             {set(`sum(total, items, {"count", "other"})`), `{"count":6,"other":0}`},
		"a sum without items is zero":                      {set(`sum(total, nil, {"count"})`), `{"count":0}`},
		"the maximum skips wrong values":                   {set(`max(total, items, {"count", "other"})`), `{"count":5}`},
		"the latest time":                                  {set(`latest(total, items, {"time"})`), `{"time":"2026-01-02T00:00:00Z"}`},
		"the earliest time":                                {set(`earliest(total, items, {"time"})`), `{"time":"2026-01-01T00:00:00Z"}`},
		"the last value that is not empty":                 {set(`last(total, items, {"text", "other"}, "none")`), `{"text":"y","other":"none"}`},
		"the first value that is not empty":                {set(`first(total, items, {"text", "other"})`), `{"text":"x"}`},
		"lists are concatenated":                           {`{list = status.concat(` + items + `, "list")}`, `{"list":[1,2,3]}`},
		"the concatenation of nothing is nil":              {`{a = 1, list = status.concat(` + items + `, "other")}`, `{"a":1}`},
		"a single item":                                    {`status.single({{status = {a = 1}}})`, `{"a":1}`},
		"two items are not single":                         {`{a = status.single(` + items + `) == nil}`, `{"a":true}`},
		"no items are not single":                          {`{a = status.single(nil) == nil}`, `{"a":true}`},
		"the generation is observed by all":                {setObserved(observed("4", "9")), `{"observedGeneration":9}`},
		"the generation is observed without items":         {setObserved("nil"), `{"observedGeneration":9}`},
		"the member generation is not observed":            {setObserved(observed("5", "9")), `{"observedGeneration":3}`},
		"the template generation is not observed":          {setObserved(observed("4", "8")), `{"observedGeneration":3}`},
		"an item without status has not observed anything": {setObserved(`{{clusterName = "a"}}`), `{"observedGeneration":3}`},
		"zeros are removed at any depth": {
			`status.withoutZeros({a = 0, b = "", c = "0s", d = {}, e = {f = 0}, g = {{h = 0}, {h = 1}}, i = false})`,
			`{"g":[{"h":1}],"i":false}`,
		},
		"equal conditions are merged": {`{c = status.mergeConditions(` + items + `)}`, `{"c":[
			{"type":"Ready","status":"True","reason":"Done","message":"a=m1, c=m2"},
			{"type":"Slow","status":"False","message":"a="},
			{"type":"Ready","status":"False","reason":"Done","message":"c=m3"}]}`},
		"a message that is too long is cut": {
			`(function() local long = string.rep("ä", 20000)
				local first = status.mergeConditions({{clusterName = "a", status = {conditions = {{message = long}}}}, {clusterName = "b", status = {conditions = {{message = "m"}}}}})
				local only = status.mergeConditions({{clusterName = "ab", status = {conditions = {{message = long}}}}})
				local last = status.mergeConditions({{clusterName = "a", status = {conditions = {{message = "m"}}}}, {clusterName = "b", status = {conditions = {{message = long}}}}})
				return {first = string.sub(first[1].message, -12), only = string.sub(only[1].message, -6), length = #only[1].message, last = last[1].message} end)()`,
			`{"first":"... (1 more)","only":"ä ...","length":32003,"last":"a=m ... (1 more)"}`,
		},
		"the last condition of each type": {`{c = status.lastConditions(` + items + `)}`, `{"c":[
			{"type":"Ready","status":"False","reason":"Done","message":"m3"}, {"type":"Slow","status":"False"}]}`},
		"a path ends at a value that is no table": {`{a = status.get({b = {c = 1}}, "b", "c"), d = status.get({b = 1}, "b", "c")}`, `{"a":1}`},
		"a condition with a reason": {`(function() local object = {status = {conditions = {{type = "Ready", status = "True", reason = "B"}}}}
			return {any = status.isTrue(object, "Ready"), listed = status.isTrue(object, "Ready", "A", "B"),
				other = status.isTrue(object, "Ready", "A"), missing = status.isTrue(object, "Slow"), wrong = status.isTrue({status = 1}, "Slow")} end)()`,
			`{"any":true,"listed":true,"other":false,"missing":false,"wrong":false}`},
		"the entries of maps are united": {`status.union({{status = {m = {a = 1, b = 1}}}, {status = {m = {b = 2}}}, {status = {m = 7}}}, "m")`, `{"a":1,"b":2}`},
		"nested fields are aggregated": {`(function() local total, items = {}, {{status = {a = {b = 1}}}, {clusterName = "x"}, {status = {a = {b = 2}}}, {status = {a = 7}}}
			status.sum(total, status.at(items, "a"), {"b"}) return total end)()`, `{"b":3}`},
		"the worst value has the highest rank":        {`status.worst({{status = {s = "A"}}, {status = {s = "B", i = 1}}, {status = {s = "B", i = 2}}, {status = {}}}, "s", {A = 1, B = 2})`, `{"s":"B","i":1}`},
		"an unknown value is better than a known one": {`status.worst({{status = {s = "other"}}, {status = {s = "A"}}}, "s", {A = 1})`, `{"s":"A"}`},
		"the latest condition of each status": {`{c = status.latestConditions({
			{status = {conditions = {{status = "X", lastTransitionTime = "2026-01-02T00:00:00Z"}, {status = "Y"}}}},
			{status = {conditions = {{status = "X", lastTransitionTime = "2026-01-01T00:00:00Z"}, {status = "Y", lastTransitionTime = "2026-01-01T00:00:00Z"}, 7}}}}, "status")}`,
			`{"c":[{"status":"X","lastTransitionTime":"2026-01-02T00:00:00Z"},{"status":"Y","lastTransitionTime":"2026-01-01T00:00:00Z"},7]}`},
		"an equal condition keeps its times": {stamp("True", "m"), `{"type":"A","status":"True","message":"m","lastTransitionTime":"t1","lastUpdateTime":"t2"}`},
		"a condition with another message keeps the time of its transition": {stamp("True", "n"),
			`{"type":"A","status":"True","message":"n","lastTransitionTime":"t1","lastUpdateTime":"2026-03-01T12:00:00Z"}`},
		"a condition with another status gets new times": {stamp("False", "m"),
			`{"type":"A","status":"False","message":"m","lastTransitionTime":"2026-03-01T12:00:00Z","lastUpdateTime":"2026-03-01T12:00:00Z"}`},
		"the status of a single item is not changed": {`status.combine({}, {{status = {a = 0}}}, nil)`, `{"status":{"a":0}}`},
		"without a status the template is unchanged": {`status.combine({status = {a = 1}}, {{}, {}}, nil)`, `{"status":{"a":1}}`},
		"a generation annotation that is no integer is skipped": {
			`status.reflectObserved({metadata = {generation = 2, annotations = {["resourcetemplate.karmada.io/generation"] = "0x1"}}, status = {a = 1, b = 2}}, {"a"})`,
			`{"a":1,"generation":2}`,
		},
		"the generation annotation is an integer": {
			`status.reflectObserved({metadata = {annotations = {["resourcetemplate.karmada.io/generation"] = "7"}}, status = {observedGeneration = 1}}, {"a"})`,
			`{"observedGeneration":1,"resourceTemplateGeneration":7}`,
		},
	}
	engine := newEngine(t, newClock())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := engine.Rules(interpreter.Scripts{configv1alpha1.InterpreterOperationInterpretStatus: {{
				Customization: "test", Text: "local status = require('status')\nfunction ReflectStatus() return " + test.expression + " end",
			}}})
			got, err := rules.ReflectStatus(t.Context(), &unstructured.Unstructured{Object: map[string]any{}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, []byte(test.want)), decode(t, got.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// decode returns the value of a JSON text. Integers become int64.
func decode(t testing.TB, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
