package stdlib_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

func TestFunctionsThatScriptsMustNotCallAreErrors(t *testing.T) {
	for _, name := range []string{
		"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module",
		"newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
	} {
		_, err := evaluate(name + "({}, {})")
		if want := "call function " + name + " is not supported"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
}

func TestTextsOfTablesAreEqualInEveryRun(t *testing.T) {
	script := `local t = {} return tostring(t), tostring(t), tostring({}), tostring(print), tostring(function() end)`
	first, _ := evaluate(script)
	second, err := evaluate(script)
	if first != second || err != nil {
		t.Errorf("the texts differ: %s and %s: %v", first, second, err)
	}
	got, err := evaluate(`local t, u = {}, {} return tostring(t) == tostring(t), tostring(t) == tostring(u), tostring(t):match("^table: 0x%x+$") ~= nil`)
	if got != "true false true" {
		t.Errorf("got %s: %v", got, err)
	}
}

func TestRandomNumbersAreEqualInEveryRun(t *testing.T) {
	script := `return math.random(), math.random(6), math.random(3, 9), math.random(2^53)`
	first, _ := evaluate(script)
	second, err := evaluate(script)
	if first != second || err != nil {
		t.Errorf("the numbers differ: %s and %s: %v", first, second, err)
	}
	got, err := evaluate(`for i = 1, 2000 do local x, y, z = math.random(), math.random(6), math.random(-2, 2)
		if x < 0 or x >= 1 or y < 1 or y > 6 or y % 1 ~= 0 or z < -2 or z > 2 then return i end end`)
	if got != "" || err != nil {
		t.Errorf("a number is out of its interval in round %s: %v", got, err)
	}
}

func TestPrintSendsOneLineForEachCall(t *testing.T) {
	host, state := stdlibtest.New()
	defer state.Close()
	if _, err := stdlibtest.Run(state, `print("a", 1, nil, true) print() print(2.5)`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a\t1\tnil\ttrue", "", "2.5"}, host.Printed); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestTraversal(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"the order is the order of the indexes, then that in which the keys were set":     {`local t, s = {1, 2, c = 1, a = 1}, "" t.b = 1 for k in pairs(t) do s = s .. k end return #s, s:sub(1, 2)`, "5 '3132'"},
		"entries can be removed during the traversal":                                     {`local t, n = {}, 0 for i = 1, 100 do t[i], t["k" .. i] = 1, 1 end for k in pairs(t) do t[k] = nil n = n + 1 end return n, next(t)`, "200 nil"},
		"entries can be changed during the traversal":                                     {`local t, n = {a = 1, b = 2, 5}, 0 for k, v in pairs(t) do t[k] = v + 1 end for _, v in pairs(t) do n = n + v end return n`, "11"},
		"entries after a shorter array are not skipped":                                   {`local t, n = {1, 2, 3, x = 4}, 0 for k, v in pairs(t) do n = n + v if k == 3 then table.remove(t) table.remove(t) table.remove(t) end end return n`, "10"},
		"all entries of an array that shrinks while it is traversed to its end are found": {`local t, n = {1, 2, 3, x = 4, y = 5}, 0 for k in pairs(t) do n = n + 1 if k == 2 then table.remove(t) end end return n`, "4"},
		"ipairs ends at the first nil":                                                    {`local n = 0 for _, v in ipairs({1, 2, nil, 4}) do n = n + v end return n`, "3"},
		"ipairs sees values that the loop adds":                                           {`local t, n = {1}, 0 for i in ipairs(t) do n = i if i < 5 then t[i + 1] = 1 end end return n`, "5"},
		"next of an unknown key is no Go panic":                                           {`return (pcall(next, {1, a = 2}, "unknown"))`, "true"},
		"next of strange keys is no Go panic":                                             {`return (pcall(next, {1, a = 2}, 0/0)), (pcall(next, {1}, -1)), (pcall(next, {}, 1e300)), (pcall(next, {1}, 0))`, "true true true true"},
		"pairs of a value that is no table is an error":                                   {`pairs(nil)`, "!"},
		"pairs returns the same function every time":                                      {`return pairs({}) == pairs({}), ipairs({}) == ipairs({})`, "true true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := evaluate(test.script); got != test.want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, test.want)
			}
		})
	}
}

func TestErrorsNameTheLineAndTheArgument(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"a wrong type":                      {"\n\nstring.rep({}, 1)", "<string>:3: bad argument #1 to rep (string expected, got table)"},
		"a missing argument":                {"\nstring.rep('x')", "<string>:2: bad argument #2 to rep (number expected, got no value)"},
		"a field that is nil":               {"local obj = {}\ntable.insert(obj.list, 1)", "<string>:2: bad argument #1 to insert (table expected, got nil)"},
		"a malformed pattern":               {"string.find('x', '[a')", "<string>:1: malformed pattern (missing ']')"},
		"concat of a table":                 {"table.concat({{}})", "invalid value (table) at index 1 in table for 'concat'"},
		"a comparison of different types":   {"\ntable.sort({1, 'x'})", "<string>:2: attempt to compare"},
		"error in a function that is named": {"local function check()\nerror('no status')\nend\ncheck()", "<string>:2: no status"},
		"error at the level of the caller":  {"local function check()\nerror('no status', 2)\nend\n\ncheck()", "<string>:5: no status"},
		"assert":                            {"\nassert(nil, 'no status')", "<string>:2: no status"},
		"a module that does not exist":      {"require('socket')", "<string>:1: module 'socket' not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := evaluate(test.script); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRequireLoadsAModuleOnce(t *testing.T) {
	host, state := stdlibtest.New()
	defer state.Close()
	loads := 0
	host.Modules = map[string]lua.LGFunction{
		"kube": func(state *lua.LState) int {
			loads++
			state.Push(state.NewTable())
			return 1
		},
		"empty":    func(*lua.LState) int { return 0 },
		"circular": func(state *lua.LState) int { return state.GetGlobal("require").(*lua.LFunction).GFunction(state) },
		"broken": func(state *lua.LState) int {
			state.RaiseError("broken")
			return 0
		},
	}
	tests := map[string]struct{ script, want string }{
		"the same table is returned":                       {`return require("kube") == require("kube"), type(require("kube"))`, "true '7461626c65'"},
		"a module without result is true":                  {`return require("empty"), require("empty")`, "true true"},
		"a module that requires itself is an error":        {`require("circular")`, "!"},
		"a module that fails is an error, also repeatedly": {`return (pcall(require, "broken")), (pcall(require, "broken"))`, "false false"},
		"an unknown module is an error":                    {`require("os")`, "!"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describe(stdlibtest.Run(state, test.script)); got != test.want {
				t.Errorf("%s: got %s, want %s", test.script, got, test.want)
			}
		})
	}
	if loads != 1 {
		t.Errorf("the module was loaded %d times, want once", loads)
	}
	if loaded := host.State().Loaded(); loaded.RawGetString("kube").Type() != lua.LTTable {
		t.Error("package.loaded does not contain the module")
	}
	host.State().Reset()
	if loaded := host.State().Loaded(); loaded.RawGetString("kube") != lua.LNil {
		t.Error("package.loaded contains the module after a reset")
	}
}

func TestTimesAreThoseOfTheHost(t *testing.T) {
	host, state := stdlibtest.New()
	defer state.Close()
	host.Clock = time.Date(2024, 7, 1, 12, 30, 0, 0, time.FixedZone("CEST", 2*60*60))
	tests := map[string]struct{ script, want string }{
		"os.time is the time of the host":             {`return os.time()`, "1719829800"},
		"os.date uses its location":                   {`return os.date("%H:%M")`, "'31323a3330'"},
		"os.date with ! is in UTC":                    {`return os.date("!%H:%M")`, "'31303a3330'"},
		"os.time of a table is in its location":       {`return os.time({year = 2024, month = 7, day = 1, hour = 12, min = 30})`, "1719829800"},
		"os.time is the inverse of os.date":           {`return os.time(os.date("*t", 1700000000))`, "1700000000"},
		"a huge year is an error":                     {`return os.time({year = 1e300, month = 1, day = 1})`, "!"},
		"a huge number of seconds is an error":        {`return os.time({year = 2024, month = 1, day = 1, sec = 1e300})`, "!"},
		"many seconds are added":                      {`return os.time({year = 1970, month = 1, day = 1, hour = 2, sec = 100000})`, "100000"},
		"a time that cannot be formatted is an error": {`return os.date("%c", 1e300)`, "!"},
		"no other functions of os exist":              {`return os.execute, os.getenv, os.exit, os.remove, os.clock`, "nil nil nil nil nil"},
		"an unknown conversion stays":                 {`return os.date("%Q%")`, "'255125'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results, err := stdlibtest.Run(state, test.script)
			if got := describe(results, err); got != test.want {
				t.Errorf("%s: got %s (%v), want %s", test.script, got, err, test.want)
			}
		})
	}
}

// TestAllFunctionsSurviveArgumentsOfAnyType calls each function with all combinations of two
// arguments.
func TestAllFunctionsSurviveArgumentsOfAnyType(t *testing.T) {
	libraries := map[string]map[string]lua.LGFunction{
		"": stdlib.Base(), "string.": stdlib.String(), "table.": stdlib.Table(), "math.": stdlib.Math(), "os.": stdlib.OS(),
	}
	arguments := []string{
		"nil", "true", "0", "-1", "2.5", "1/0", "0/0", "1e300", "''", "'%%'", "'[a'", "'10'",
		"{}", "{1, nil, 3}", "{a = 1}", "function(...) return ... end",
	}
	for library, functions := range libraries {
		for name := range functions {
			t.Run(library+name, func(t *testing.T) {
				scripts := []string{"return " + library + name + "()"}
				for _, first := range arguments {
					for _, second := range arguments {
						for _, call := range []string{"(%s, %s)", "('aXb', %s, %s)", "({1, 2, 3}, %s, %s)"} {
							scripts = append(scripts, "return "+library+name+fmt.Sprintf(call, first, second))
						}
					}
				}
				runWithoutPanic(t, scripts)
			})
		}
	}
}

func runWithoutPanic(t *testing.T, scripts []string) {
	t.Helper()
	host, state := stdlibtest.New()
	defer func() { state.Close() }()
	for _, script := range scripts {
		if host.Err() != nil { // the script before has reached a limit
			state.Close()
			host, state = stdlibtest.New()
		}
		host.Steps, host.MaxSteps = 0, 1<<20
		host.Bytes, host.MaxBytes, host.MaxString = 0, 1<<20, 1<<16
		_, err := stdlibtest.Run(state, script)
		if err == nil {
			continue
		}
		for _, panicked := range []string{"runtime error", "negative number", "makeslice", "out of range ["} {
			if strings.Contains(err.Error(), panicked) {
				t.Errorf("%s: a Go panic: %v", script, err)
			}
		}
	}
}
