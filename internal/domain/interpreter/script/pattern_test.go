package script

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"
)

// describedResults is a script with the function f, which returns the results of a script in the notation
// of testdata/patterns.txt.
func describedResults(script string) string {
	return `local function g()
` + script + `
end
local function describe(...)
  local texts = {}
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    if type(value) == "string" then
      local digits = {}
      for j = 1, #value do digits[j] = string.format("%02x", string.byte(value, j, j)) end
      value = "'" .. table.concat(digits) .. "'"
    end
    texts[i] = tostring(value)
  end
  return table.concat(texts, " ")
end
function f() return describe(g()) end`
}

// runScript returns the results of a script, or ! for an error.
func runScript(t testing.TB, engine *Engine, script string) (string, error) {
	t.Helper()
	main, err := compile(describedResults(script), scriptSource)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	described := "!"
	s := engine.newSandbox()
	err = s.call(context.Background(), invocation{script: main, function: "f", results: 1, read: func(_ *sandbox, results []lua.LValue) error {
		described = results[0].String()
		return nil
	}})
	return described, err
}

func TestFunctionsForStringsReturnTheResultsOfTheReferenceImplementation(t *testing.T) {
	reference, err := os.ReadFile("testdata/patterns.txt")
	if err != nil {
		t.Fatal(err)
	}
	engine := mustNewEngine(t, Options{})
	for line := range strings.Lines(string(reference)) {
		script, want, isCase := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !isCase || strings.HasPrefix(line, "#") {
			continue
		}
		if got, err := runScript(t, engine, script); got != want {
			t.Errorf("%s\n got %s (%v)\nwant %s", script, got, err, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	tests := map[string]struct{ pattern, subject, want string }{
		"plain text":                                {"lo", "hello", "4 5"},
		"plain text that is not found":              {"x", "hello", "nil"},
		"the empty pattern matches at once":         {"", "hello", "1 0"},
		"* is greedy":                               {"l*", "llama", "1 2"},
		"* matches nothing":                         {"x*", "hello", "1 0"},
		"+ needs one":                               {"l+", "hello", "3 4"},
		"- is lazy":                                 {"<.->", "<a><b>", "1 3"},
		"? is optional":                             {"https?:", "http:", "1 5"},
		"^ is an anchor":                            {"^l", "hello", "nil"},
		"^ in the middle is a character":            {"a^", "ba^", "2 3"},
		"$ is an anchor at the end":                 {"l$", "all", "3 3"},
		"$ in the middle is a character":            {"a$b", "a$b", "1 3"},
		"an anchored pattern matches everything":    {"^.*$", "a\nb", "1 3"},
		"a class":                                   {"%d+", "abc123", "4 6"},
		"a complement":                              {"%D+", "123abc", "4 6"},
		"a set":                                     {"[b-d]+", "abcde", "2 4"},
		"a complement of a set":                     {"[^b-d]+", "bcade", "3 3"},
		"a set with classes":                        {"[%a_]+", "12ab_c", "3 6"},
		"a set with ]":                              {"[]x]+", "a]x", "2 3"},
		"a set with - at its end":                   {"[a-]+", "x-a", "2 3"},
		"an escaped special character":              {"%.", "a.b", "2 2"},
		"bytes above 127":                           {"[\x80-\xff]+", "aé", "2 3"},
		"a zero byte":                               {"%z", "a\x00", "2 2"},
		"%b":                                        {"%b()", "f(a(b)c)d", "2 8"},
		"%b with equal characters":                  {"%b||", "a|b|c", "2 4"},
		"%b without an end":                         {"%b()", "f((a)", "3 5"},
		"%f at the start of a word":                 {"%f[%a]%a+", "12 ab", "4 5"},
		"%f at the end":                             {"%f[%z]", "ab", "3 2"},
		"a reference":                               {"(%a)%1", "abccd", "3 4 '63'"},
		"a reference to an empty capture":           {"(x*)%1y", "y", "1 1 ''"},
		"a reference to a position matches nothing": {"()%1", "abc", "nil"},
		"nested captures and a position":            {"((%a+)()=(%d*))", " key=12", "2 7 '6b65793d3132' '6b6579' 5 '3132'"},
		"a suffix after a capture is a character":   {"(a)*", "a*", "1 2 '61'"},
		"a suffix at the start is a character":      {"*", "a*", "2 2"},
		"% at the end":                              {"a%", "a", "!"},
		"a set that is open":                        {"[a", "a", "!"},
		"a set with ] only":                         {"[]", "a", "!"},
		"a set that ends with %":                    {"[a%", "a", "!"},
		"a capture that is open":                    {"(a", "a", "!"},
		"a capture that is not open":                {"a)", "a", "!"},
		"a reference to no capture":                 {"%1", "a", "!"},
		"a reference to an open capture":            {"(a%1)", "aa", "!"},
		"%f without a set":                          {"%fa", "a", "!"},
		"%b with one character":                     {"%b(", "a", "!"},
		"33 captures":                               {strings.Repeat("()", 33), "a", "!"},
		"more than 4 KiB":                           {"[" + strings.Repeat("a", 5000) + "]", "a", "!"},
		"more than 200 repetitions":                 {strings.Repeat("a*", 201), "a", "!"},
	}
	engine := mustNewEngine(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			script := "return string.find(" + quoted(test.subject) + "," + quoted(test.pattern) + ")"
			if got, err := runScript(t, engine, script); got != test.want {
				t.Errorf("%q in %q: got %s (%v), want %s", test.pattern, test.subject, got, err, test.want)
			}
		})
	}
}

// quoted returns a string literal of Lua.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(text) + `"`
}

func TestPatternMatchingEndsWithTheCall(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	engine.timeout = 20 * time.Millisecond
	for name, script := range map[string]string{
		"lazy repetitions":         `return string.find(string.rep("a", 1000), string.rep("a-", 30) .. "b")`,
		"captures":                 `return string.match(string.rep("a", 1000), string.rep("(a*)", 20) .. "b")`,
		"optional bytes, in gsub":  `return string.gsub(string.rep("a", 1000), string.rep("a?", 100) .. string.rep("a", 100) .. "b", "")`,
		"repetitions, in gmatch":   `for _ in string.gmatch(string.rep("a", 1000), string.rep("a*", 30) .. "b") do end`,
		"repetitions, in pcall":    `while true do pcall(string.find, string.rep("a", 1000), string.rep("a-", 30) .. "b") end`,
		"quadratic searches of %b": `return string.find(string.rep("(", 1000000), "%b()")`,
		"references":               `return string.find(string.rep("a", 10000), "(a*)%1%1%1(a*)%2b")`,
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := runScript(t, engine, script); err == nil || !strings.Contains(err.Error(), "time limit") {
				t.Errorf("err = %v, want the time limit", err)
			}
			if elapsed := time.Since(start); elapsed > 10*time.Second {
				t.Errorf("the call took %s", elapsed)
			}
		})
	}
}

// patternScripts are scripts with a subject, a pattern and a replacement.
var patternScripts = map[string]string{
	"find":           "return string.find(subject, pattern)",
	"find from 2":    "return string.find(subject, pattern, math.min(2, #subject + 1))",
	"match":          "return (string.match(subject, pattern))",
	"gmatch":         "local all = {} for a, b in string.gmatch(subject, pattern) do all[#all + 1] = a all[#all + 1] = b or 'none' end return unpack(all)",
	"gsub":           "return string.gsub(subject, pattern, replacement)",
	"gsub twice":     "return string.gsub(subject, pattern, replacement, 2)",
	"gsub, table":    "return string.gsub(subject, pattern, {a = 1, b = 'two', ab = false})",
	"gsub, function": "return string.gsub(subject, pattern, function(a, b) return (b or '') .. a end)",
}

// drawElement returns an element of a pattern that is well-formed and well-defined.
func drawElement(t *rapid.T, captures *[]string) string {
	single := rapid.SampledFrom([]string{
		"a", "b", ".", " ", "1", "%a", "%d", "%s", "%w", "%p", "%l", "%u", "%x", "%A", "%S", "%W", "%.", "%%",
		"[ab]", "[^a]", "[a-c]", "[%a_]", "[^%s]", "[]]", "[^]]", "[a-]", "[%-1]", "$", "-", ":",
	})
	switch rapid.IntRange(0, 9).Draw(t, "kind of element") {
	case 0:
		*captures = append(*captures, "()")
		return "()"
	case 1:
		return "%b()"
	case 2:
		// gopher-lua rejects a reference to a captured position, which matches nothing.
		if len(*captures) > 0 && (*captures)[0] != "()" {
			return "%1"
		}
	case 3, 4:
		var content strings.Builder
		for range rapid.IntRange(1, 2).Draw(t, "length of the capture") {
			content.WriteString(single.Draw(t, "element") + rapid.SampledFrom([]string{"", "*", "+", "-", "?"}).Draw(t, "suffix"))
		}
		*captures = append(*captures, content.String())
		return "(" + content.String() + ")"
	}
	return single.Draw(t, "element") + rapid.SampledFrom([]string{"", "", "*", "+", "-", "?"}).Draw(t, "suffix")
}

// runInGopherLua returns the results of a script with gopher-lua's libraries.
func runInGopherLua(t testing.TB, script string) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	if err := state.DoString(describedResults(script) + "\nresult = f()"); err != nil {
		return "!"
	}
	return state.GetGlobal("result").String()
}

func TestWellFormedPatternsMatchAsInGopherLua(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"find", "find from 2", "match", "gmatch", "gsub", "gsub twice", "gsub, table", "gsub, function"}).Draw(rt, "script")
		pattern := rapid.SampledFrom([]string{"", "", "", "^"}).Draw(rt, "anchor")
		var captures []string
		for range rapid.IntRange(1, 5).Draw(rt, "length") {
			pattern += drawElement(rt, &captures)
		}
		pattern += rapid.SampledFrom([]string{"", "", "", "$"}).Draw(rt, "end")
		if name == "gmatch" && pattern[0] == '^' {
			return // In gopher-lua, an anchor prevents the iteration.
		}
		subject := rapid.StringOfN(rapid.SampledFrom([]rune("aabbcA1 (().%]-_:$")), 0, 12, -1).Draw(rt, "subject")
		replacement := rapid.SampledFrom([]string{"", "x", "%0", "<%0>", "%%", "%1%1"}).Draw(rt, "replacement")
		script := "local subject, pattern, replacement = " + quoted(subject) + "," + quoted(pattern) + "," + quoted(replacement) + "\n" + patternScripts[name]
		want := runInGopherLua(t, script)
		if got, err := runScript(t, engine, script); got != want {
			rt.Errorf("%s of %q in %q with %q\n got %s (%v)\nwant %s", name, pattern, subject, replacement, got, err, want)
		}
	})
}

// FuzzPattern requires that a pattern of any text ends with a result or an error within its time, and
// never with a Go panic.
func FuzzPattern(f *testing.F) {
	f.Add("hello world", "(%w+) (%w+)", "%2 %1")
	f.Add("f(a(b)c)d", "%b()", "%0")
	f.Add("aaaaaaaaaaaaaaaaaaaa", "(a*)(a*)(a*)(a*)b", "")
	f.Add("]", "[^]]-%f[%w]$", "%")
	f.Fuzz(func(t *testing.T, subject, pattern, replacement string) {
		engine := mustNewEngine(t, Options{})
		engine.timeout = 10 * time.Millisecond
		for name, script := range patternScripts {
			script = "local subject, pattern, replacement = " + quoted(subject) + "," + quoted(pattern) + "," + quoted(replacement) + "\n" + script
			if Check(script) != nil {
				return // gopher-lua's scanner does not accept all bytes in a string
			}
			if _, err := runScript(t, engine, script); err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%s of %q in %q: %v", name, pattern, subject, err)
			}
		}
	})
}
