package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCompileRejectsTexts(t *testing.T) {
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
		"a long text":                        {strings.Repeat(" ", maxScript+1), "bytes, more than the limit of"},
		"nested braces":                      {"x = " + strings.Repeat("{", maxScript/4) + strings.Repeat("}", maxScript/4), "line 1: the script is nested deeper than 1000 levels"},
		"nested functions":                   {strings.Repeat("function f() ", 5000) + strings.Repeat("end ", 5000), "nested deeper than 1000 levels"},
		"nested blocks":                      {strings.Repeat("do ", 10_000) + strings.Repeat("end ", 10_000), "nested deeper than 1000 levels"},
		"nested indexes":                     {"x = " + strings.Repeat("a[", 20_000) + "1" + strings.Repeat("]", 20_000), "nested deeper than 1000 levels"},
		"many signs":                         {"x = " + strings.Repeat("- ", maxScript/3) + "1", "nested deeper than 1000 levels"},
		"many lengths":                       {"x = " + strings.Repeat("#", maxScript-10) + "y", "nested deeper than 1000 levels"},
		"many powers":                        {"x = 1" + strings.Repeat("^1", maxScript/3), "nested deeper than 1000 levels"},
		"many sums":                          {"x = 1" + strings.Repeat("+1", maxScript/3), "nested deeper than 1000 levels"},
		"many conditions":                    {"if a then " + strings.Repeat("elseif a then ", 5000) + "end", "nested deeper than 1000 levels"},
		"open brackets":                      {"x = " + strings.Repeat("(", maxScript-10), "at the end of the script"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := compileQuickly(t, test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("err = %.200v, want %q", err, test.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestLargeScriptsCompile compiles scripts whose compilation needs much time or memory. They may be
// rejected.
func TestLargeScriptsCompile(t *testing.T) {
	many := func(format string) string {
		var text strings.Builder
		for i := 0; text.Len() < maxScript-200; i++ {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	for name, text := range map[string]string{
		"functions":         many("function f%d(a) local t = {name = a} if a == nil then return 'none' .. 1 end return t end\n"),
		"small functions":   many("f%d=function()end "),
		"labels":            many("::a%d::"),
		"fields":            "x={" + many("%d,") + "}",
		"a concatenation":   "return ''" + strings.Repeat("..'a'", 150),
		"parts of a sum":    "return 1" + strings.Repeat("+1", 500),
		"visible variables": strings.Repeat("local a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t f=function() ", 90) + strings.Repeat("x=x ", 20_000) + strings.Repeat("end ", 90),
	} {
		t.Run(name, func(t *testing.T) {
			if err := compileQuickly(t, text); err != nil && len(text) > maxScript {
				t.Errorf("%.200v", err)
			}
		})
	}
}

func compileQuickly(t *testing.T, text string) error {
	t.Helper()
	before, start := allocatedBytes(), time.Now()
	err := Check(text)
	elapsed, used := time.Since(start), (allocatedBytes()-before)>>20
	t.Logf("%s, %d MiB", elapsed.Round(time.Millisecond), used)
	if used > 300 || elapsed > time.Minute {
		t.Errorf("the compilation allocated %d MiB in %s", used, elapsed)
	}
	return err
}

func allocatedBytes() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
