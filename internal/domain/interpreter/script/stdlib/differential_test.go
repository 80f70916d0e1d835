package stdlib_test

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

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

// evaluatePattern runs a script of patternScripts with the libraries of a Lua state.
func evaluatePattern(state *lua.LState, script, subject, pattern, replacement string) string {
	state.SetGlobal("subject", lua.LString(subject))
	state.SetGlobal("pattern", lua.LString(pattern))
	state.SetGlobal("replacement", lua.LString(replacement))
	return describe(stdlibtest.Run(state, script))
}

// differsByDefinition reports whether TestDifferencesFromGopherLua lists the case.
func differsByDefinition(name, pattern string) bool {
	return pattern == "" && strings.HasPrefix(name, "find") ||
		strings.HasPrefix(pattern, "^") && name == "gmatch"
}

// element generates one element of a pattern that is well-formed and well-defined.
func element(t *rapid.T, captures *[]string) string {
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
		// gopher-lua refuses a reference to a captured position, which matches nothing.
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

func TestWellFormedPatternsMatchAsInGopherLua(t *testing.T) {
	gopher := lua.NewState()
	defer gopher.Close()
	_, ours := stdlibtest.New()
	defer ours.Close()
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		if rapid.IntRange(0, 5).Draw(t, "anchor") == 0 {
			text.WriteString("^")
		}
		var captures []string
		for range rapid.IntRange(0, 5).Draw(t, "length") {
			text.WriteString(element(t, &captures))
		}
		if rapid.IntRange(0, 5).Draw(t, "end") == 0 {
			text.WriteString("$")
		}
		subject := rapid.StringOfN(rapid.SampledFrom([]rune("aabbcA1 (().%]-_:$")), 0, 12, -1).Draw(t, "subject")
		replacement := rapid.SampledFrom([]string{"", "x", "%0", "<%0>", "%%", "%1%1"}).Draw(t, "replacement")
		for name, script := range patternScripts {
			pattern := text.String()
			if differsByDefinition(name, pattern) {
				continue
			}
			want := evaluatePattern(gopher, script, subject, pattern, replacement)
			if got := evaluatePattern(ours, script, subject, pattern, replacement); got != want {
				t.Errorf("%s of %q in %q with %q\n got %s\nwant %s", name, pattern, subject, replacement, got, want)
			}
		}
	})
}

// FuzzPattern requires that a pattern of any text ends with a result or an error, never with a Go
// panic, and within a limit of steps.
func FuzzPattern(f *testing.F) {
	f.Add("hello world", "(%w+) (%w+)", "%2 %1")
	f.Add("f(a(b)c)d", "%b()", "%0")
	f.Add("aaaaaaaaaaaaaaaaaaaa", "(a*)(a*)(a*)(a*)b", "")
	f.Add("]", "[^]]-%f[%w]$", "%")
	f.Fuzz(func(t *testing.T, subject, pattern, replacement string) {
		for name, script := range patternScripts {
			host, state := stdlibtest.New()
			host.MaxSteps, host.MaxBytes, host.MaxString = 100_000, 1<<20, 1<<16
			state.SetGlobal("subject", lua.LString(subject))
			state.SetGlobal("pattern", lua.LString(pattern))
			state.SetGlobal("replacement", lua.LString(replacement))
			_, err := stdlibtest.Run(state, script)
			if err != nil && (strings.Contains(err.Error(), "runtime error") || strings.Contains(err.Error(), "negative number")) {
				t.Errorf("%s of %q in %q: %v", name, pattern, subject, err)
			}
			state.Close()
		}
	})
}

// FuzzFormat requires that no format leads to a Go panic.
func FuzzFormat(f *testing.F) {
	f.Add("%5.2f %-3d %q %s", 1.5, "x")
	f.Add("%#+- 099.99g%c%%%u%i%o%X%E", -1e308, "\x00\r\n\"")
	f.Fuzz(func(t *testing.T, format string, number float64, text string) {
		host, state := stdlibtest.New()
		defer state.Close()
		host.MaxBytes, host.MaxString = 1<<20, 1<<16
		state.SetGlobal("f", lua.LString(format))
		state.SetGlobal("n", lua.LNumber(number))
		state.SetGlobal("s", lua.LString(text))
		for _, script := range []string{"return string.format(f, n, s, n, s)", "return string.format(f, n, n, n, n, n)", "return os.date(f, n)", "return tonumber(s), tonumber(s, 36)"} {
			_, err := stdlibtest.Run(state, script)
			if err != nil && (strings.Contains(err.Error(), "runtime error") || strings.Contains(err.Error(), "negative number")) {
				t.Errorf("%s with %q, %v, %q: %v", script, format, number, text, err)
			}
		}
	})
}
