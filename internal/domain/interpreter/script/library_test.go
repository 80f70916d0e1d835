package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

func TestUnsupportedFunctionsAreErrors(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	for _, name := range unsupportedFunctions {
		_, err := runScript(t, engine, name+"({}, {})")
		if want := "call function " + name + " is not supported"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	got, err := runScript(t, engine, "return io, debug, coroutine, os.execute, os.getenv, os.exit, os.remove, os.clock, _printregs, string.dump")
	if want := strings.TrimSpace(strings.Repeat("nil ", 10)); got != want || err != nil {
		t.Errorf("got %s, %v, want no dangerous functions", got, err)
	}
}

func TestLongStringsAreErrors(t *testing.T) {
	tests := map[string]string{
		"rep of a huge string":         `return string.rep("x", 1e12)`,
		"rep whose length overflows":   `return string.rep("xxxxxxxxxxxxxxxx", 2^60)`,
		"gsub with a long replacement": `return (string.rep("x", 10000):gsub("x", string.rep("y", 10000)))`,
		"gsub with %0 many times":      `return (string.rep("x", 10000):gsub(".*", string.rep("%0", 1000)))`,
		"gsub with a function":         `local s = string.rep("y", 10000) return (string.rep("x", 1000):gsub("x", function() return s end))`,
		"gsub with a table":            `return (string.rep("x", 1000):gsub("x", {x = string.rep("y", 10000)}))`,
		"concat of a long string":      `local t = {} for i = 1, 1000 do t[i] = string.rep("x", 10000) end return table.concat(t)`,
		"concat with a long separator": `local t = {} for i = 1, 1000 do t[i] = 1 end return table.concat(t, string.rep("x", 10000))`,
		"format of a long string":      `local s = string.rep("x", 1000000) return string.format("%s%s", s, s)`,
		"a string that doubles":        `local s = "x" while true do s = s .. s end`,
		"a string of many parts":       `local s = string.rep("x", 100000) return s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s`,
		"a caught error":               `local s = "x" while true do local ok = pcall(function() s = s .. s end) if not ok then error("the limit of 1 MiB for one string") end end`,
	}
	engine := mustNewEngine(t, Options{})
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := runScript(t, engine, script); err == nil || !strings.Contains(err.Error(), "the limit of 1 MiB for one string") {
				t.Errorf("err = %v, want the limit for one string", err)
			}
		})
	}
	if _, err := runScript(t, engine, `local t = {} for i = 1, 100 do t[i] = string.rep("x", 1000000) end`); err == nil || !strings.Contains(err.Error(), "the limit of 64 MiB in total") {
		t.Errorf("err = %v, want the limit for all strings", err)
	}
}

func TestFormatsThatOnlyGoHasAreErrors(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	tests := map[string]struct{ script, want string }{
		"two digits for width and precision": {`return string.format("%5.2f|%-3d|%s", 1.234, 7, "x")`, "'20312e32337c3720207c78'"},
		"a percent sign":                     {`return string.format("100%%[1]")`, "'313030255b315d'"},
		"a wide field":                       {`return string.format("%1000d", 1)`, "!"},
		"a long fraction":                    {`return string.format("%.1000f", 1)`, "!"},
		"a width in an argument":             {`return string.format("%*d", 1000, 1)`, "!"},
		"a repeated argument":                {`return string.format("%[1]s%[1]s", "x")`, "!"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := runScript(t, engine, test.script); got != test.want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, test.want)
			}
		})
	}
}

func TestConcatenationsReturnTheResultsOfGopherLua(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	for _, script := range []string{
		`return "a" .. 1 .. 2.5 .. "b", ("x" .. "y"):upper()`,
		`local function f() return "a", "b" end return "x" .. f(), "y" .. (f()), f() .. f()`,
		`return ""` + strings.Repeat(` .. "ab"`, 60),
		`local function f(x, a) a = a .. x a = a .. "!" return a end return f("1", "2")`,
		`local t = {"a" .. "b", ["k" .. 1] = "v" .. 2, n = #("x" .. "yz")} return t[1], t.k1, t.n`,
		`local a, b = nil, false return a or "x" .. "y", not (b and "" .. "z"), "1" .. 2 + 3, -("4" .. 5)`,
		`local s = "" for i = 10, 1, -3 do s = s .. i .. " " end while #s < 20 do s = s .. "." end return s`,
		`local s = "" repeat local done = s .. "x" == "xxx" s = s .. "x" until done or s .. "" == "xxxx" return s`,
		`local function f(n, s) if n == 0 then return s .. "!" end return f(n - 1, s .. n) end return f(3, "x")`,
		`local s = "" for k in pairs({["a" .. "b"] = 1}) do s = s .. k end return (s .. "c"):rep(2), select("#", s .. "d")`,
		`return "a" .. nil`,
		`return {} .. "a"`,
	} {
		want := runInGopherLua(t, script)
		if got, err := runScript(t, engine, script); got != want {
			t.Errorf("%s: got %s (%v), want %s", script, got, err, want)
		}
	}
}

func TestTimesAreThoseOfTheEngine(t *testing.T) {
	engine := mustNewEngine(t, Options{Now: func() time.Time { return time.Date(2024, 7, 1, 10, 30, 0, 0, time.UTC) }})
	tests := map[string]struct{ script, want string }{
		"os.time":                           {`return os.time(), os.time(nil)`, "1719829800 1719829800"},
		"os.date":                           {`return os.date("!%H:%M")`, "'31303a3330'"},
		"os.date with a time":               {`return os.date("!%Y-%m-%d", 0)`, "'313937302d30312d3031'"},
		"os.date as a table":                {`return os.date("!*t").min`, "30"},
		"os.time is the inverse of os.date": {`return os.time(os.date("*t", 1700000000))`, "1700000000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := runScript(t, engine, test.script); got != test.want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, test.want)
			}
		})
	}
}

func TestModulesAreLoadedOnce(t *testing.T) {
	engine := mustNewEngine(t, Options{Modules: map[string]string{
		"tools": "return {}", "empty": "local x = 1", "circular": "return require('circular')", "broken": "error('broken')",
	}})
	tests := map[string]struct{ script, want string }{
		"the same table is returned":                       {`return require("tools") == require("tools"), require("kube") == require("kube")`, "true true"},
		"a module without result is true":                  {`return require("empty"), require("empty")`, "true true"},
		"a module is in package.loaded":                    {`local tools = require("tools") return package.loaded.tools == tools`, "true"},
		"a module that requires itself is an error":        {`require("circular")`, "!"},
		"a module that fails is an error, also repeatedly": {`return (pcall(require, "broken")), (pcall(require, "broken"))`, "false false"},
		"an unknown module is an error":                    {`require("os")`, "!"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := runScript(t, engine, test.script); got != test.want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, test.want)
			}
		})
	}
}

func TestFunctionsReadLazyTables(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	for name, test := range map[string]struct{ script, want string }{
		"pairs":        {`local n = 0 for k, v in pairs(obj.l) do n = n + v end return {n}`, "[60]"},
		"ipairs":       {`local n = 0 for i, v in ipairs(obj.l) do n = n + v end return {n}`, "[60]"},
		"next":         {`return {next(obj.l)}`, "[1,10]"},
		"unpack":       {`return {unpack(obj.l)}`, "[10,20,30]"},
		"table.concat": {`return {table.concat(obj.l, " ")}`, `["10 20 30"]`},
		"table.insert": {`table.insert(obj.l, 40) return {obj.l[4], obj.l[3]}`, "[40,30]"},
		"table.remove": {`return {table.remove(obj.l, 1), obj.l[1]}`, "[10,20]"},
		"table.sort":   {`table.sort(obj.l, function(a, b) return a > b end) return {obj.l[1]}`, "[30]"},
		"table.getn":   {`return {table.getn(obj.l)}`, "[3]"},
		"table.maxn":   {`return {table.maxn(obj.l)}`, "[3]"},
		"os.time":      {`return {os.time(obj.date)}`, "[86400]"},
	} {
		t.Run(name, func(t *testing.T) {
			script := "function wrapped(obj)\n" + test.script + "\nend return {r = wrapped(obj)}"
			got, err := evaluate(t, engine, script, `{"l":[10,20,30],"date":{"year":1970,"month":1,"day":2,"hour":0}}`)
			if want := `{"r":` + test.want + "}"; got != want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, want)
			}
		})
	}
}

// TestAllFunctionsSurviveArgumentsOfAnyType calls each function with all combinations of two arguments.
func TestAllFunctionsSurviveArgumentsOfAnyType(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	engine.timeout = time.Minute
	arguments := []string{
		"nil", "true", "0", "-1", "2.5", "1/0", "0/0", "1e300", "''", "'%%'", "'[a'", "'10'",
		"{}", "{1, nil, 3}", "{a = 1}", "function(...) return ... end",
	}
	s := engine.newSandbox()
	for name, library := range s.libraries {
		library.ForEach(func(function, value lua.LValue) {
			if value.Type() != lua.LTFunction {
				return
			}
			var calls strings.Builder
			for _, first := range arguments {
				for _, second := range arguments {
					for _, call := range []string{"f(%s, %s)", "f('aXb', %s, %s)", "f({1, 2, 3}, %s, %s)"} {
						fmt.Fprintf(&calls, "pcall(function() return "+call+" end)\n", first, second)
					}
				}
			}
			script := fmt.Sprintf("local f = (%s or require('kube')).%s\nfunction calls()\n%s\nend\ncalls()\nreturn true", name, function.String(), calls.String())
			if got, err := runScript(t, engine, script); got != "true" {
				t.Errorf("%s.%s: %v", name, function.String(), err)
			}
		})
	}
}
