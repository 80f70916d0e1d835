package script

import (
	"context"
	"strings"
	"sync"
	"testing"
)

// TestRunsShareNothing runs pairs of scripts. The second one must not see what the first one did.
func TestRunsShareNothing(t *testing.T) {
	tests := map[string]struct{ first, second string }{
		"a global variable":                   {`x = 1`, `return {x = x}`},
		"a field of _G":                       {`_G.x = 1`, `return {x = _G.x}`},
		"a changed function":                  {`tostring = function() return "bad" end`, `return {x = tostring(nil) ~= "nil" or nil}`},
		"a changed library":                   {`string.upper = function() return "bad" end`, `return {x = string.upper("a") ~= "A" or nil, y = ("a"):upper() ~= "A" or nil}`},
		"a removed function of a library":     {`table.insert = nil`, `return {x = table.insert == nil or nil}`},
		"a new function of a library":         {`string.double = print`, `return {x = string.double and 1, y = ("").double and 1}`},
		"the table of the methods of strings": {`if string.__index then string.__index.upper = nil end`, `return {x = string.upper("a") ~= "A" or nil}`},
		"a removed library":                   {`math = nil`, `return {x = math.floor(1.5) ~= 1 or nil}`},
		"the module kube":                     {`require("kube").resourceAdd = nil`, `return {x = require("kube").resourceAdd == nil or nil}`},
		"a module":                            {`require("tools").x = 1`, `return {x = require("tools").x}`},
		"a variable of a module":              {`require("tools").count()`, `return {x = require("tools").count() ~= 1 or nil}`},
		"a loaded module":                     {`package.loaded.tools = {x = 1}`, `return {x = require("tools").x}`},
		"the object":                          {`obj.x = 1 obj.l[1] = 2`, `return {x = obj.x, l = obj.l[1]}`},
		"an iterator of a library":            {`next = nil`, `local n = 0 for k in pairs({a = 1}) do n = n + 1 end return {x = n ~= 1 or nil}`},
		"names that were used":                {`zzz = 1 zzz = nil`, `zzz = 1 aaa = 2 local s = "" for k in pairs(_G) do s = s .. k .. " " end return {x = s ~= "ReflectStatus zzz aaa _G " and s or nil}`},
		"a function that an error left open":  {`local n = 0 f = function() n = n + 1 end pcall(function() local m = 0 g = function() m = m + 1 end error("x") end) g()`, `return {x = f or g}`},
	}
	modules := map[string]string{"tools": "local tools, n = {}, 0 function tools.count() n = n + 1 return n end return tools"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			engine := mustNewEngine(t, Options{Modules: modules})
			const object = `{"l":[]}`
			for range 3 {
				if _, err := evaluate(t, engine, test.first+" return {}", object); err != nil {
					t.Fatal(err)
				}
				got, err := evaluate(t, engine, test.second, object)
				if err != nil || got != "{}" {
					t.Fatalf("got %s, %v", got, err)
				}
			}
		})
	}
}

func TestConcurrentRuns(t *testing.T) {
	engine := mustNewEngine(t, Options{Modules: map[string]string{"tools": "return {n = 1}"}})
	rules := rulesOf(engine, health, `local t = require("tools") local kube = require("kube")
function InterpretHealth(o) string.x = o.n t.n = t.n + o.n for k, v in pairs(o.l) do t.n = t.n + v end return t.n == 7 and string.x == o.n and kube.resourceAdd("1", "1") == "2" end`)
	object := objectOf(t, `{"n":3,"l":[1,2]}`)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				if healthy, err := rules.IsHealthy(context.Background(), object); !healthy || err != nil {
					t.Errorf("healthy = %t, err = %v", healthy, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestPrintReachesTheCaller(t *testing.T) {
	var lines []string
	engine := mustNewEngine(t, Options{Print: func(line string) { lines = append(lines, line) }})
	if _, err := evaluate(t, engine, `print("a", 1, nil) print() return {}`, `{}`); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, "|"); got != "a\t1\tnil|" {
		t.Errorf("got %q", got)
	}
}

func TestModulesMustCompile(t *testing.T) {
	_, err := NewEngine(Options{Now: newClock(0).now, Modules: map[string]string{"tools": "return\nreturn"}})
	if err == nil || !strings.Contains(err.Error(), "compiling the module tools: line 2") {
		t.Errorf("err = %v", err)
	}
}
