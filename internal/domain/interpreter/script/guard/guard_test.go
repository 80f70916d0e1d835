package guard

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

func TestCompileRefusesTexts(t *testing.T) {
	many := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	tests := map[string]struct{ text, want string }{
		"a syntax error":                     {"local x = 1\nx = = 2", "line 2, column 5: syntax error near '='"},
		"an open block":                      {"if x then", "at the end of the script: "},
		"an open string":                     {"x = 'abc", "unterminated string"},
		"an open comment":                    {"--[[ abc", "invalid multiline comment"},
		"a break without a loop":             {"\nbreak", "line 2: no loop to break"},
		"varargs outside of a function":      {"function f() return ... end", "line 1: cannot use '...' outside a vararg function"},
		"a goto without a label":             {"goto x", "no visible label 'x' for <goto> at line 1"},
		"two equal labels":                   {"::a::\n::a::", "label 'a' already defined"},
		"a goto into the scope of a local":   {"do goto x local y = 1 ::x:: print(y) end", "jumps into the scope of local 'y'"},
		"labels for which gopher-lua panics": {"local a do goto x local b do ::x:: end end", "label"},
		"a long text":                        {strings.Repeat(" ", 1<<20+1), "the script has 1048577 bytes, more than the limit of 1048576"},
		"nested brackets":                    {"x = " + strings.Repeat("(", 1<<19), "line 1: the script is nested deeper than 200 levels"},
		"nested braces":                      {"x = " + strings.Repeat("{", 1<<19), "nested deeper than 200 levels"},
		"nested functions":                   {strings.Repeat("function f() ", 1<<16), "nested deeper than 200 levels"},
		"nested blocks":                      {strings.Repeat("do ", 1<<18), "nested deeper than 200 levels"},
		"nested indexes":                     {"x = a" + strings.Repeat("[a", 1<<18), "nested deeper than 200 levels"},
		"many signs":                         {"x = " + strings.Repeat("- ", 1<<18) + "1", "more than 1000 operators"},
		"many negations":                     {"x = " + strings.Repeat("not ", 1<<17) + "1", "more than 1000 operators"},
		"many powers":                        {"x = 1" + strings.Repeat("^1", 1<<18), "more than 1000 operators"},
		"many concatenations":                {"x = 1" + strings.Repeat("..a", 1<<18), "more than 1000 operators"},
		"many sums":                          {"x = 1" + strings.Repeat("+1", 100_000), "nested deeper than 1000 levels"},
		"many conditions":                    {"if a then " + strings.Repeat("elseif a then ", 40_000) + "end", "nested deeper than 1000 levels"},
		"many tokens":                        {strings.Repeat("f()", 1<<17), "more than 250000 words and symbols"},
		"many functions":                     {many(2000, "f%d = function() end "), "more than 1000 functions"},
		"many constants":                     {many(60_000, "x=%d "), "too complex to compile"},
		"many names":                         {many(60_000, "x%d=y "), "too complex to compile"},
		"many labels":                        {many(40_000, "::a%d:: "), "too complex to compile"},
		"many visible variables":             {strings.Repeat("local "+strings.TrimSuffix(many(150, "v%d,"), ",")+" f = function() ", 90) + strings.Repeat("x=x ", 20_000) + strings.Repeat("end ", 90), "too complex to compile"},
		"many fields":                        {"x = {" + strings.Repeat("1,", 30_000) + "}", "more than 25000 fields"},
		"many captured variables":            {capturing(), "uses 270 local variables of enclosing functions, more than the limit of 255"},
		"many local variables":               {many(250, "local a%d "), "too many local variables"},
		"a long function":                    {strings.Repeat("x=x ", 60_000), "the function is too long"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, start := allocated(), time.Now()
			_, err := Compile(test.text, "script", 1<<20)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("err = %.200v, want %q", err, test.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if used := (allocated() - before) >> 20; used > 400 {
				t.Errorf("the compilation allocated %d MiB in %s", used, time.Since(start))
			}
		})
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// capturing returns a function that uses 270 variables of enclosing functions.
func capturing() string {
	var text, uses strings.Builder
	for level := range 3 {
		for i := range 90 {
			fmt.Fprintf(&text, "local v%d_%d ", level, i)
			fmt.Fprintf(&uses, "x = v%d_%d ", level, i)
		}
		text.WriteString("local f = function() ")
	}
	return text.String() + uses.String() + "end end end"
}

func TestLargeScriptsCompile(t *testing.T) {
	var text strings.Builder
	for i := range 900 {
		fmt.Fprintf(&text, "function f%d(a, b)\n  local t = {name = a, value = b, list = {1, 2, 3}}\n  if a == nil then return 'none' .. %d end\n  t[a] = #t.list\n  return t\nend\n", i, i)
	}
	for _, text := range []string{text.String(), "return {" + strings.Repeat("1,", 20_000) + "}", "return ''" + strings.Repeat("..'a'", 150), "return 1" + strings.Repeat("+1", 500)} {
		start := time.Now()
		if _, err := Compile(text, "script", 1<<20); err != nil {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	}
}

// TestRewrittenScriptsBehaveAsBefore compares with the compiler of gopher-lua.
func TestRewrittenScriptsBehaveAsBefore(t *testing.T) {
	tests := map[string]string{
		"concatenation":                   `return "a" .. 1 .. 2.5 .. "b", ("x" .. "y"):upper()`,
		"concatenation of the last value": `local function f() return "a", "b" end return "x" .. f(), "y" .. (f()), f() .. f()`,
		"a long concatenation":            `return ""` + strings.Repeat(` .. "ab"`, 60),
		"concatenation of a parameter":    `local function f(x, a) a = a .. x a = a .. "!" return a end return f("1", "2")`,
		"constructors":                    `local function f() return 1, 2 end local t = {f(), f(), x = f(), [10] = "t", ["k" .. 1] = 2; f()} return #t, t[1], t[2], t[3], t[4], t.x, t[10], t.k1`,
		"a constructor with nil":          `local t = {nil, nil, 3, x = nil} return #t, t[3]`,
		"a large constructor":             `local t = {` + strings.Repeat("1, 2, ", 200) + `x = 5} return #t, t[400], t.x`,
		"a constructor with varargs":      `local function f(...) local t = {...} return #t, t[3] end return f(1, 2, 3)`,
		"a constructor in parentheses":    `local function f() return 1, 2 end return #{(f())}, #{f(), nil}`,
		"length":                          `return #"abc", #{1, 2}, -#"ab" ^ 2, not #"a"`,
		"assignments from right to left":  `local a = {} local i = 1 i, a[i], a[i + 1] = i + 1, 20, 30 return i, a[1], a[2]`,
		"swapped fields":                  `local t = {a = 1, b = 2} t.a, t.b = t.b, t.a return t.a, t.b`,
		"an assignment with few values":   `local t = {a = 1, b = 2} local c t.a, t.b, c = 5 return t.a, t.b, c`,
		"an assignment with many values":  `local t, n = {}, 0 local function f() n = n + 1 return n, n end t.a = f(), f(), f() return t.a, n`,
		"an assignment from a call":       `local function f() return 1, 2, 3 end local t, b = {}, nil t.a, b, t.c = f() return t.a, b, t.c`,
		"nested assignments":              `local t = {} t.x = {} t.x.y = {z = 1} t.x.y.z = t.x.y.z + 1 return t.x.y.z`,
		"functions in tables":             `local t = {a = {}} function t.f(x) return x end function t.a.g(x) return x * 2 end function t.a:h(x) self.v = x return self end return t.f(1), t.a.g(2), t.a:h(3).v`,
		"recursive local functions":       `local function f(n) return n < 2 and 1 or n * f(n - 1) end local g = function(n) return n == 0 and 0 or g(n - 1) end return f(5), g(3)`,
		"recursive functions in a loop":   `local r = 0 for i = 1, 3 do local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end r = r + f(i) end return r`,
		"functions share variables":       `local function counter() local n = 0 return function() n = n + 1 return n end, function() return n end end local inc, get = counter() inc() inc() return get()`,
		"functions in a loop":             `local t = {} for i = 1, 3 do t[i] = function() i = i + 1 return i end end return t[1](), t[1](), t[2]()`,
		"varargs":                         `local function f(...) return select("#", ...), ... end return f(nil, 2, nil)`,
		"the table arg":                   `local function f(...) local s = 0 for i = 1, arg.n do s = s + (arg[i] or 10) end return s end return f(1, nil, 3)`,
		"the table arg in a function":     `local function f(...) return (function() return arg[1] end)() end return f(7)`,
		"the global arg":                  `arg = {5} return arg[1], (function() return arg[1] end)()`,
		"no table arg with dots":          `local function f(...) local a = ... return arg end return f(1)`,
		"unused varargs":                  `local function f(a, ...) return a end return f(1, 2, 3)`,
		"varargs of the chunk":            `return select("#", ...)`,
		"goto continue":                   `local s = "" for i = 1, 5 do if i == 3 then goto continue end s = s .. i ::continue:: end return s`,
		"goto backwards":                  `local i, fs = 1, {} ::top:: local j = i fs[i] = function() return j end i = i + 1 if i < 4 then goto top end return fs[1](), fs[2](), fs[3]()`,
		"goto out of nested loops":        `for i = 1, 3 do for j = 1, 3 do if j == 2 then x = i .. j goto done end end end ::done:: return x`,
		"goto in a nested function":       `return (function() do goto a end ::b:: do return "b" end ::a:: goto b end)()`,
		"repeat with a local variable":    `local n = 0 repeat local done = n == 3 n = n + 1 until done return n`,
		"while with closures":             `local n = 0 while (function() return n < 3 end)() do n = n + 1 end return n`,
		"numeric loops":                   `local s = "" for i = 10, 1, -3 do s = s .. i .. " " end for i = #s, #s do s = s .. i end return s`,
		"generic loops":                   `local s = "" for i, v in ipairs({"a", "b"}) do s = s .. i .. v end for k, v in next, {x = 1}, nil do s = s .. k .. v end return s`,
		"conditions":                      `local a, b = nil, false return a or "x" .. "y", b and {} or #"abc", not (a .. "" == "x" and 1) == nil`,
		"an error has its line":           "local t = {}\n\nt.a.b = 1",
		"an error in a constructor":       "local t = {\n x = 1,\n y = nil + 1}",
		"a concatenation of nil":          "local s\n= 'a'\ns = s .. nil",
		"tail calls":                      `local function f(n, s) if n == 0 then return s .. "!" end return f(n - 1, s) end return f(300, "x")`,
		"methods of strings":              `local s = "a" return s:rep(3), ("%d"):format(3), #s:rep(2)`,
		"comments and line breaks":        "-- c\nlocal a = --[[x]] 1\n--[==[ y\n]==]\nreturn a\n",
		"a label at the end of a block":   `do local x = 1 goto done ::done:: end return 1`,
		"parentheses in an assignment":    `local function two() return 1, 2 end local a, b = (two()) local c a, b, c = 0, (two()) return a, b, c`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			want, wantErr := runPlain(text)
			got, err := results(t, text)
			if got != want || (err == nil) != (wantErr == nil) || lineOf(err) != lineOf(wantErr) {
				t.Errorf("got %s, %v, want %s, %v", got, err, want, wantErr)
			}
		})
	}
}

// gopher-lua does not initialize the control variable of these loops.
func TestGenericLoopsStartWithNil(t *testing.T) {
	for _, text := range []string{
		`local s = "" for i, v in ipairs({"a", "b"}) do s = s .. v end for k, v in next, {x = 1} do s = s .. k end return s`,
		`local t, s = {x = 1}, "" for i, v in ipairs({"a", "b"}) do s = s .. v end for k in next, t do s = s .. k end return s`,
		`local s = "ab" local function f(_, c) if c == nil then return "x" end end for k in f do s = s .. k end return s`,
		`local function f() return {x = 1} end local s = "ab" for k in next, f() do s = s .. k end return s`,
	} {
		if got, err := results(t, text); got != "abx" || err != nil {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
}

func lineOf(err error) string {
	if err == nil {
		return ""
	}
	parts := strings.SplitN(err.Error(), ":", 3)
	return parts[1]
}

func runPlain(text string) (string, error) {
	state := lua.NewState()
	defer state.Close()
	function, err := state.Load(strings.NewReader(text), "script")
	if err != nil {
		return "", err
	}
	state.Push(function)
	if err := state.PCall(0, lua.MultRet, nil); err != nil {
		return "", err
	}
	return stackText(state), nil
}

func results(t *testing.T, text string) (string, error) {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	if err := runGuarded(t, state, text); err != nil {
		return "", err
	}
	return stackText(state), nil
}

func stackText(state *lua.LState) string {
	var values []string
	for i := 1; i <= state.GetTop(); i++ {
		values = append(values, state.Get(i).String())
	}
	return strings.Join(values, ", ")
}

func TestIndexedName(t *testing.T) {
	const text = "local a = b.c\nx = a.x.y + f().z + a:m()\nprint(a.k, b.k)\nq[1].w = 2"
	tests := map[string]struct {
		line      int
		key, want string
	}{
		"a variable":           {1, "c", "variable 'b'"},
		"a field":              {2, "y", "field 'x'"},
		"a result":             {2, "z", "result of 'f'"},
		"a method":             {2, "m", "variable 'a'"},
		"two candidates":       {3, "k", ""},
		"an entry of a list":   {4, "w", ""},
		"a line without a key": {4, "y", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IndexedName(text, test.line, test.key); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
